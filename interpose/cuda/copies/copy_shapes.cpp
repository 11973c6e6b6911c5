#include "interpose/cuda/copies/copy_shapes.h"

namespace hpe::cuda_hooks {

namespace {

// The address of one side as a number; false for arrays.
bool address_of(CUmemorytype type, const void* host, CUdeviceptr device, CUdeviceptr& found) {
  switch (type) {
    case CU_MEMORYTYPE_HOST: found = reinterpret_cast<CUdeviceptr>(host); return true;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED: found = device; return true;
    default: return false;
  }
}

}  // namespace

// Merges rows without gaps on both sides into one.
void copy_shape_of::join_rows() noexcept {
  if (rows_.count > 1 && rows_.to_pitch == rows_.width && rows_.from_pitch == rows_.width) {
    rows_.width *= rows_.count;
    rows_.count = 1;
  }
}

copy_shape_of::copy_shape_of(const CUDA_MEMCPY2D* description) {
  if (description == nullptr) return;
  const CUDA_MEMCPY2D& c = *description;
  plain_ = address_of(c.srcMemoryType, c.srcHost, c.srcDevice, rows_.from) &&
           address_of(c.dstMemoryType, c.dstHost, c.dstDevice, rows_.to);
  if (!plain_) return;
  // A pitch of 0 means rows without gaps.
  rows_.from_pitch = c.srcPitch != 0 ? c.srcPitch : c.srcXInBytes + c.WidthInBytes;
  rows_.to_pitch = c.dstPitch != 0 ? c.dstPitch : c.dstXInBytes + c.WidthInBytes;
  rows_.from += c.srcY * rows_.from_pitch + c.srcXInBytes;
  rows_.to += c.dstY * rows_.to_pitch + c.dstXInBytes;
  rows_.width = c.WidthInBytes;
  rows_.count = c.Height;
  join_rows();
}

template <class Planes>
void copy_shape_of::take_planes(const Planes& c) {
  plain_ = address_of(c.srcMemoryType, c.srcHost, c.srcDevice, rows_.from) &&
           address_of(c.dstMemoryType, c.dstHost, c.dstDevice, rows_.to) && c.srcPitch != 0 && c.dstPitch != 0 &&
           // Planes are adjacent, like rows.
           (c.Depth <= 1 || (c.srcHeight == c.Height && c.dstHeight == c.Height));
  if (!plain_) return;
  rows_.from_pitch = c.srcPitch;
  rows_.to_pitch = c.dstPitch;
  rows_.from += (c.srcZ * c.srcHeight + c.srcY) * c.srcPitch + c.srcXInBytes;
  rows_.to += (c.dstZ * c.dstHeight + c.dstY) * c.dstPitch + c.dstXInBytes;
  rows_.width = c.WidthInBytes;
  rows_.count = c.Height * c.Depth;
  join_rows();
}

copy_shape_of::copy_shape_of(const CUDA_MEMCPY3D* description) {
  if (description != nullptr) take_planes(*description);
}

copy_shape_of::copy_shape_of(const CUDA_MEMCPY3D_PEER* description) : peer_(true) {
  if (description != nullptr) take_planes(*description);
}

}  // namespace hpe::cuda_hooks
