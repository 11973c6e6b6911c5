// A pitch or height of 0 in a description means rows or planes without gaps from the first one of the memory on; a
// description of a part names them. It also names the address of its first byte as the base of memory: the driver
// refuses a base that is not mapped, and only the part's own bytes have to be in device memory.
#include "interpose/cuda/copies/copy_boxes.h"

namespace hpe::cuda_hooks {

namespace {

std::optional<CUdeviceptr> address_of(CUmemorytype type, const void* host, CUdeviceptr device) {
  switch (type) {
    case CU_MEMORYTYPE_HOST: return reinterpret_cast<CUdeviceptr>(host);
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED: return device;
    default: return std::nullopt;
  }
}

template <class Description>
void name_pitches(Description& c) {
  if (c.srcPitch == 0) c.srcPitch = c.srcXInBytes + c.WidthInBytes;
  if (c.dstPitch == 0) c.dstPitch = c.dstXInBytes + c.WidthInBytes;
}

template <class Planes>
void name_heights(Planes& c) {
  if (c.srcHeight == 0) c.srcHeight = c.srcY + c.Height;
  if (c.dstHeight == 0) c.dstHeight = c.dstY + c.Height;
}

bool is_memory(CUmemorytype type) { return type != CU_MEMORYTYPE_ARRAY; }

// The offset of a side's first byte goes into its base.
template <class Description>
void move_source(Description& c, std::size_t offset) {
  if (c.srcMemoryType == CU_MEMORYTYPE_HOST)
    c.srcHost = static_cast<const std::byte*>(c.srcHost) + offset;
  else
    c.srcDevice += offset;
  c.srcXInBytes = c.srcY = 0;
}
template <class Description>
void move_target(Description& c, std::size_t offset) {
  if (c.dstMemoryType == CU_MEMORYTYPE_HOST)
    c.dstHost = static_cast<std::byte*>(c.dstHost) + offset;
  else
    c.dstDevice += offset;
  c.dstXInBytes = c.dstY = 0;
}

template <class Planes>
copied_box box_of_planes(Planes c) {
  name_pitches(c);
  name_heights(c);
  copied_box result;
  result.whole = {0, 0, 0, c.WidthInBytes, c.Height, c.Depth};
  const auto place = [](CUdeviceptr base, std::size_t x, std::size_t y, std::size_t z, std::size_t pitch,
                        std::size_t height) {
    return box_place{base + (z * height + y) * pitch + x, pitch, pitch * height};
  };
  if (const auto base = address_of(c.dstMemoryType, c.dstHost, c.dstDevice))
    result.to = place(*base, c.dstXInBytes, c.dstY, c.dstZ, c.dstPitch, c.dstHeight);
  if (const auto base = address_of(c.srcMemoryType, c.srcHost, c.srcDevice))
    result.from = place(*base, c.srcXInBytes, c.srcY, c.srcZ, c.srcPitch, c.srcHeight);
  return result;
}

template <class Description>
void begin_at(Description& c, const box_part& part) {
  name_pitches(c);
  c.srcXInBytes += part.x;
  c.dstXInBytes += part.x;
  c.srcY += part.y;
  c.dstY += part.y;
  c.WidthInBytes = part.width;
  c.Height = part.height;
}

template <class Planes>
Planes part_of_planes(Planes c, const box_part& part) {
  name_heights(c);
  begin_at(c, part);
  c.srcZ += part.z;
  c.dstZ += part.z;
  c.Depth = part.depth;
  if (is_memory(c.srcMemoryType)) {
    move_source(c, (c.srcZ * c.srcHeight + c.srcY) * c.srcPitch + c.srcXInBytes);
    c.srcZ = 0;
  }
  if (is_memory(c.dstMemoryType)) {
    move_target(c, (c.dstZ * c.dstHeight + c.dstY) * c.dstPitch + c.dstXInBytes);
    c.dstZ = 0;
  }
  return c;
}

}  // namespace

copied_box box_of(const CUDA_MEMCPY2D& description) {
  CUDA_MEMCPY2D c = description;
  name_pitches(c);
  copied_box result;
  result.whole = {0, 0, 0, c.WidthInBytes, c.Height, 1};
  if (const auto base = address_of(c.dstMemoryType, c.dstHost, c.dstDevice))
    result.to = box_place{*base + c.dstY * c.dstPitch + c.dstXInBytes, c.dstPitch, 0};
  if (const auto base = address_of(c.srcMemoryType, c.srcHost, c.srcDevice))
    result.from = box_place{*base + c.srcY * c.srcPitch + c.srcXInBytes, c.srcPitch, 0};
  return result;
}
copied_box box_of(const CUDA_MEMCPY3D& description) { return box_of_planes(description); }
copied_box box_of(const CUDA_MEMCPY3D_PEER& description) { return box_of_planes(description); }

CUDA_MEMCPY2D part_of(const CUDA_MEMCPY2D& description, const box_part& part) {
  CUDA_MEMCPY2D c = description;
  begin_at(c, part);
  if (is_memory(c.srcMemoryType)) move_source(c, c.srcY * c.srcPitch + c.srcXInBytes);
  if (is_memory(c.dstMemoryType)) move_target(c, c.dstY * c.dstPitch + c.dstXInBytes);
  return c;
}
CUDA_MEMCPY3D part_of(const CUDA_MEMCPY3D& description, const box_part& part) {
  return part_of_planes(description, part);
}
CUDA_MEMCPY3D_PEER part_of(const CUDA_MEMCPY3D_PEER& description, const box_part& part) {
  return part_of_planes(description, part);
}

}  // namespace hpe::cuda_hooks
