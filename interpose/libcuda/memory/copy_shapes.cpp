#include "interpose/libcuda/memory/copy_shapes.h"

#include <algorithm>

#include "interpose/cudart/device/context.h"
#include "interpose/cudart/device/errors.h"
#include "interpose/cudart/memory/array.h"

namespace hpe::libcuda {

using cudart::require;

namespace {

struct side {
  cudaArray_t array = nullptr;
  cudaPos position{};       // in an array, in bytes
  cudaPitchedPtr memory{};  // at the position
};

struct side_of_driver {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  std::size_t x, y, z, pitch, height;
};

side read(const side_of_driver& from, std::size_t width, std::size_t height) {
  side result;
  if (from.type == CU_MEMORYTYPE_ARRAY) {
    require(from.array != nullptr, cudaErrorInvalidValue);
    result.array = reinterpret_cast<cudaArray_t>(from.array);
    result.position = {from.x, from.y, from.z};
    return result;
  }
  const bool is_host = from.type == CU_MEMORYTYPE_HOST;
  require(is_host || from.type == CU_MEMORYTYPE_DEVICE || from.type == CU_MEMORYTYPE_UNIFIED, cudaErrorInvalidValue);
  const auto base = is_host ? reinterpret_cast<CUdeviceptr>(from.host) : from.device;
  const std::size_t pitch = from.pitch != 0 ? from.pitch : from.x + width;
  const std::size_t rows = from.height != 0 ? from.height : from.y + height;
  require(base != 0 && from.x + width <= pitch, cudaErrorInvalidValue);
  const CUdeviceptr first = base + (from.z * rows + from.y) * pitch + from.x;
  result.memory = {reinterpret_cast<void*>(first), pitch, width, rows};
  return result;
}

std::size_t element_of(const side& one, const side& other) {
  const cudaArray_t array = one.array != nullptr ? one.array : other.array;
  return array != nullptr ? cudart::process().arrays().find(array)->element_bytes() : 1;
}

/// Forms without depth have one plane.
template <class Shape>
cudaMemcpy3DParms copy_of_any(const Shape& from, std::size_t source_z, std::size_t source_height, std::size_t target_z,
                              std::size_t target_height, std::size_t depth) {
  const side source = read({from.srcMemoryType, from.srcHost, from.srcDevice, from.srcArray, from.srcXInBytes,
                            from.srcY, source_z, from.srcPitch, source_height},
                           from.WidthInBytes, from.Height);
  const side target = read({from.dstMemoryType, from.dstHost, from.dstDevice, from.dstArray, from.dstXInBytes,
                            from.dstY, target_z, from.dstPitch, target_height},
                           from.WidthInBytes, from.Height);
  const std::size_t element = element_of(source, target);
  const auto is_whole = [&](std::size_t bytes) { return bytes % element == 0; };
  require(is_whole(from.WidthInBytes) && is_whole(source.position.x) && is_whole(target.position.x),
          cudaErrorInvalidValue);
  cudaMemcpy3DParms to{};
  to.srcArray = source.array;
  to.srcPos = {source.position.x / element, source.position.y, source.position.z};
  to.srcPtr = source.memory;
  to.dstArray = target.array;
  to.dstPos = {target.position.x / element, target.position.y, target.position.z};
  to.dstPtr = target.memory;
  to.extent = {from.WidthInBytes / element, from.Height, depth};
  to.kind = cudaMemcpyDefault;
  return to;
}

struct format {
  CUarray_format driver;
  int bits;
  cudaChannelFormatKind kind;
};

constexpr format formats[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 8, cudaChannelFormatKindUnsigned},
                              {CU_AD_FORMAT_UNSIGNED_INT16, 16, cudaChannelFormatKindUnsigned},
                              {CU_AD_FORMAT_UNSIGNED_INT32, 32, cudaChannelFormatKindUnsigned},
                              {CU_AD_FORMAT_SIGNED_INT8, 8, cudaChannelFormatKindSigned},
                              {CU_AD_FORMAT_SIGNED_INT16, 16, cudaChannelFormatKindSigned},
                              {CU_AD_FORMAT_SIGNED_INT32, 32, cudaChannelFormatKindSigned},
                              {CU_AD_FORMAT_HALF, 16, cudaChannelFormatKindFloat},
                              {CU_AD_FORMAT_FLOAT, 32, cudaChannelFormatKindFloat}};

}  // namespace

cudaMemcpy3DParms copy_of(const CUDA_MEMCPY2D& from) { return copy_of_any(from, 0, 0, 0, 0, 1); }

cudaMemcpy3DParms copy_of(const CUDA_MEMCPY3D& from) {
  return copy_of_any(from, from.srcZ, from.srcHeight, from.dstZ, from.dstHeight, from.Depth);
}

cudaMemcpy3DParms copy_of(const CUDA_MEMCPY3D_PEER& from) {
  return copy_of_any(from, from.srcZ, from.srcHeight, from.dstZ, from.dstHeight, from.Depth);
}

CUDA_MEMCPY3D shape_of(const cudaMemcpy3DParms& from) {
  const std::size_t element = element_of({.array = from.srcArray}, {.array = from.dstArray});
  CUDA_MEMCPY3D to{};
  const auto x = [&](cudaArray_t array, const cudaPos& at) { return array != nullptr ? at.x * element : at.x; };
  const auto type = [](cudaArray_t array) { return array != nullptr ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED; };
  to.srcXInBytes = x(from.srcArray, from.srcPos);
  to.srcY = from.srcPos.y;
  to.srcZ = from.srcPos.z;
  to.srcMemoryType = type(from.srcArray);
  to.srcDevice = reinterpret_cast<CUdeviceptr>(from.srcPtr.ptr);
  to.srcArray = reinterpret_cast<CUarray>(from.srcArray);
  to.srcPitch = from.srcPtr.pitch;
  to.srcHeight = from.srcPtr.ysize;
  to.dstXInBytes = x(from.dstArray, from.dstPos);
  to.dstY = from.dstPos.y;
  to.dstZ = from.dstPos.z;
  to.dstMemoryType = type(from.dstArray);
  to.dstDevice = reinterpret_cast<CUdeviceptr>(from.dstPtr.ptr);
  to.dstArray = reinterpret_cast<CUarray>(from.dstArray);
  to.dstPitch = from.dstPtr.pitch;
  to.dstHeight = from.dstPtr.ysize;
  to.WidthInBytes = from.extent.width * element;
  to.Height = from.extent.height;
  to.Depth = from.extent.depth;
  return to;
}

cudaChannelFormatDesc format_of(CUarray_format wanted, unsigned channels) {
  require(channels == 1 || channels == 2 || channels == 4, cudaErrorInvalidValue);
  const auto* const found =
      std::find_if(std::begin(formats), std::end(formats), [&](const format& each) { return each.driver == wanted; });
  require(found != std::end(formats), cudaErrorNotSupported);
  const auto bits = [&](unsigned channel) { return channel < channels ? found->bits : 0; };
  return {bits(0), bits(1), bits(2), bits(3), found->kind};
}

CUarray_format format_of(const cudaChannelFormatDesc& wanted) {
  const auto* const found = std::find_if(std::begin(formats), std::end(formats), [&](const format& each) {
    return each.bits == wanted.x && each.kind == wanted.f;
  });
  require(found != std::end(formats), cudaErrorNotSupported);
  return found->driver;
}

}  // namespace hpe::libcuda
