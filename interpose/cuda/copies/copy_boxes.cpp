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

// Sets what all descriptions have. A side in memory begins at its base, any other one at the part's byte and row.
template <class Description>
void set_part(Description& c, const copied_box& box, const box_part& part) {
  name_pitches(c);
  c.srcXInBytes += part.x;
  c.dstXInBytes += part.x;
  c.srcY += part.y;
  c.dstY += part.y;
  if (box.from) {
    c.srcDevice = begin_of(*box.from, part);
    c.srcHost = reinterpret_cast<const void*>(c.srcDevice);  // NOLINT(performance-no-int-to-ptr)
    c.srcXInBytes = c.srcY = 0;
  }
  if (box.to) {
    c.dstDevice = begin_of(*box.to, part);
    c.dstHost = reinterpret_cast<void*>(c.dstDevice);  // NOLINT(performance-no-int-to-ptr)
    c.dstXInBytes = c.dstY = 0;
  }
  c.WidthInBytes = part.width;
  c.Height = part.height;
}

template <class Planes>
Planes part_of_planes(Planes c, const box_part& part) {
  const copied_box box = box_of_planes(c);
  name_heights(c);
  set_part(c, box, part);
  c.srcZ = box.from ? 0 : c.srcZ + part.z;
  c.dstZ = box.to ? 0 : c.dstZ + part.z;
  c.Depth = part.depth;
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
  set_part(c, box_of(description), part);
  return c;
}
CUDA_MEMCPY3D part_of(const CUDA_MEMCPY3D& description, const box_part& part) {
  return part_of_planes(description, part);
}
CUDA_MEMCPY3D_PEER part_of(const CUDA_MEMCPY3D_PEER& description, const box_part& part) {
  return part_of_planes(description, part);
}

}  // namespace hpe::cuda_hooks
