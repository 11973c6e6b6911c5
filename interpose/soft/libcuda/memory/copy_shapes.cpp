#include "interpose/soft/libcuda/memory/copy_shapes.h"

#include <algorithm>

#include "interpose/shape/described_copy.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/memory/array.h"

namespace hpe::libcuda {

using cudart::require;

namespace {

std::size_t element_of(cudaArray_t one, cudaArray_t other) {
  const cudaArray_t array = one != nullptr ? one : other;
  return array != nullptr ? cudart::process().arrays().find(array)->element_bytes() : 1;
}

// One side of a copy in the runtime's form: positions in arrays count elements, and `memory` begins at the first byte
// of the copy.
struct runtime_side {
  cudaArray_t array = nullptr;
  cudaPos position{};
  cudaPitchedPtr memory{};
};

runtime_side in_form_of_runtime(const cuda_shape::copy_side& from, std::size_t width, std::size_t element) {
  runtime_side to;
  if (from.is_array) {
    require(from.x % element == 0, cudaErrorInvalidValue);
    to.array = reinterpret_cast<cudaArray_t>(from.array);
    to.position = {from.x / element, from.y, from.z};
  } else {
    require(from.base != 0 && from.x <= from.pitch && width <= from.pitch - from.x, cudaErrorInvalidValue);
    to.memory = {reinterpret_cast<void*>(from.first()), from.pitch, width, from.height};
  }
  return to;
}

template <class Description>
cudaMemcpy3DParms copy_of_any(const Description& description) {
  const auto from = cuda_shape::decoded(description);
  require(from.has_value(), cudaErrorInvalidValue);
  const auto array_of = [](const cuda_shape::copy_side& s) {
    require(!s.is_array || s.array != nullptr, cudaErrorInvalidValue);
    return reinterpret_cast<cudaArray_t>(s.array);
  };
  const std::size_t element = element_of(array_of(from->from), array_of(from->to));
  require(from->extent.width % element == 0, cudaErrorInvalidValue);
  const runtime_side source = in_form_of_runtime(from->from, from->extent.width, element);
  const runtime_side target = in_form_of_runtime(from->to, from->extent.width, element);
  cudaMemcpy3DParms to{};
  to.srcArray = source.array;
  to.srcPos = source.position;
  to.srcPtr = source.memory;
  to.dstArray = target.array;
  to.dstPos = target.position;
  to.dstPtr = target.memory;
  to.extent = {from->extent.width / element, from->extent.rows, from->extent.planes};
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

cudaMemcpy3DParms copy_of(const CUDA_MEMCPY2D& from) { return copy_of_any(from); }
cudaMemcpy3DParms copy_of(const CUDA_MEMCPY3D& from) { return copy_of_any(from); }
cudaMemcpy3DParms copy_of(const CUDA_MEMCPY3D_PEER& from) { return copy_of_any(from); }

CUDA_MEMCPY3D shape_of(const cudaMemcpy3DParms& from) {
  const std::size_t element = element_of(from.srcArray, from.dstArray);
  CUDA_MEMCPY3D to{};
  const auto x = [&](cudaArray_t array, const cudaPos& at) {
    return array != nullptr ? saturated_product(at.x, element) : at.x;
  };
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
  to.WidthInBytes = saturated_product(from.extent.width, element);
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
