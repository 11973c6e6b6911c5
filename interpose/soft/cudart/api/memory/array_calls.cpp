// The CUDA runtime's functions for arrays, and copies to and from them.

#include <cuda_runtime_api.h>

#include <algorithm>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/memory/array.h"
#include "interpose/soft/cudart/memory/copying.h"
#include "interpose/soft/cudart/stream/capture.h"

using namespace hpe::cudart;

namespace {

constexpr unsigned known_flags =
    cudaArrayLayered | cudaArrayCubemap | cudaArraySurfaceLoadStore | cudaArrayTextureGather;

void check_array(const cudaChannelFormatDesc* format, unsigned flags) {
  require(format != nullptr, cudaErrorInvalidValue);
  require((flags & ~known_flags) == 0, cudaErrorNotSupported);  // the other flags are for sparse arrays
}

cudaArray_t create(const cudaChannelFormatDesc* format, cudaExtent extent, unsigned flags) {
  check_array(format, flags);
  context& cuda = process();
  const int device = cuda.current_device();
  cuda.captures().require_unsafe_calls_allowed();
  return cuda.arrays().create(*format, extent, flags, device);
}

/// One side of a two-dimensional copy: a position in an array, or an address in memory.
struct rows_side {
  cudaArray_const_t array = nullptr;
  std::size_t bytes_across = 0;
  std::size_t rows_down = 0;
  const void* memory = nullptr;
  std::size_t pitch = 0;
};

cudaMemcpy3DParms rows(const rows_side& to, const rows_side& from, std::size_t width, std::size_t height,
                       cudaMemcpyKind kind) {
  cudaMemcpy3DParms what{};
  const std::size_t element = process().arrays().find(to.array != nullptr ? to.array : from.array)->element_bytes();
  require(width % element == 0 && to.bytes_across % element == 0 && from.bytes_across % element == 0,
          cudaErrorInvalidValue);
  what.extent = {width / element, height, 1};
  what.kind = kind;
  what.dstArray = const_cast<cudaArray_t>(to.array);
  what.srcArray = const_cast<cudaArray_t>(from.array);
  what.dstPos = {to.bytes_across / element, to.rows_down, 0};
  what.srcPos = {from.bytes_across / element, from.rows_down, 0};
  if (to.array == nullptr) what.dstPtr = {const_cast<void*>(to.memory), to.pitch, width, height};
  if (from.array == nullptr) what.srcPtr = {const_cast<void*>(from.memory), from.pitch, width, height};
  return what;
}

rows_side array_side(cudaArray_const_t array, std::size_t bytes_across, std::size_t rows_down) {
  require(array != nullptr, cudaErrorInvalidResourceHandle);
  return {array, bytes_across, rows_down, nullptr, 0};
}

rows_side memory_side(const void* memory, std::size_t pitch) {
  require(memory != nullptr, cudaErrorInvalidValue);
  return {nullptr, 0, 0, memory, pitch};
}

/// Divides a range of bytes in an array into boxes (the rest of the first row, whole rows, and a part of the last row)
/// and calls copy() for each of them.
template <class Copy>
cudaError_t for_rows(cudaArray_const_t array, std::size_t across, std::size_t down, std::size_t count,
                     const Copy& copy) {
  const auto it = process().arrays().find(array);
  const std::size_t row = it->extent.width * it->element_bytes();
  std::size_t done = 0;
  while (done < count) {
    const std::size_t width =
        across != 0 ? std::min(count - done, row - std::min(across, row)) : std::min(count - done, row);
    require(width != 0, cudaErrorInvalidValue);
    const std::size_t height = across == 0 && width == row ? (count - done) / row : 1;
    check(copy(done, across, down, width, height));
    done += width * height;
    down += height;
    across = 0;
  }
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaChannelFormatDesc CUDARTAPI cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

cudaError_t CUDARTAPI cudaMallocArray(cudaArray_t* made, const cudaChannelFormatDesc* format, size_t width,
                                      size_t height, unsigned flags) {
  return api_call(__func__, [&] {
    require(made != nullptr, cudaErrorInvalidValue);
    *made = create(format, {width, height, 0}, flags);
  });
}

cudaError_t CUDARTAPI cudaMalloc3DArray(cudaArray_t* made, const cudaChannelFormatDesc* format, cudaExtent extent,
                                        unsigned flags) {
  return api_call(__func__, [&] {
    require(made != nullptr, cudaErrorInvalidValue);
    *made = create(format, extent, flags);
  });
}

cudaError_t CUDARTAPI cudaFreeArray(cudaArray_t array) {
  return api_call(__func__, [&] {
    process().captures().require_unsafe_calls_allowed();
    if (array == nullptr) return;
    process().finish_work();
    process().arrays().free(array);
  });
}

cudaError_t CUDARTAPI cudaMallocMipmappedArray(cudaMipmappedArray_t* made, const cudaChannelFormatDesc* format,
                                               cudaExtent extent, unsigned levels, unsigned flags) {
  return api_call(__func__, [&] {
    require(made != nullptr, cudaErrorInvalidValue);
    check_array(format, flags);
    context& cuda = process();
    cuda.captures().require_unsafe_calls_allowed();
    *made = cuda.mipmaps().create(*format, extent, levels, flags, cuda.current_device());
  });
}

cudaError_t CUDARTAPI cudaGetMipmappedArrayLevel(cudaArray_t* array, cudaMipmappedArray_const_t handle,
                                                 unsigned level) {
  return api_call(__func__, [&] {
    const auto mipmap = process().mipmaps().find(handle);
    require(array != nullptr && level < mipmap->levels.size(), cudaErrorInvalidValue);
    *array = mipmap->levels[level];
  });
}

cudaError_t CUDARTAPI cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap) {
  return api_call(__func__, [&] {
    process().captures().require_unsafe_calls_allowed();
    if (mipmap == nullptr) return;
    process().finish_work();
    process().mipmaps().free(mipmap);
  });
}

cudaError_t CUDARTAPI cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                                       cudaArray_t array) {
  return api_call(__func__, [&] {
    const auto it = process().arrays().find(array);
    if (format != nullptr) *format = it->format;
    if (extent != nullptr) *extent = it->extent;
    if (flags != nullptr) *flags = it->flags;
  });
}

cudaError_t CUDARTAPI cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  return api_call(__func__, [&] {
    require(format != nullptr, cudaErrorInvalidValue);
    *format = process().arrays().find(array)->format;
  });
}

cudaError_t CUDARTAPI cudaMemcpy2DToArray(cudaArray_t to, size_t across, size_t down, const void* from, size_t pitch,
                                          size_t width, size_t height, cudaMemcpyKind kind) {
  return api_call(__func__, [&] {
    return copy_now(rows(array_side(to, across, down), memory_side(from, pitch), width, height, kind));
  });
}

cudaError_t CUDARTAPI cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t across, size_t down, const void* from,
                                               size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                               cudaStream_t stream) {
  return api_call(__func__, [&] {
    return copy_in_stream(rows(array_side(to, across, down), memory_side(from, pitch), width, height, kind), stream);
  });
}

cudaError_t CUDARTAPI cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t across, size_t down,
                                            size_t width, size_t height, cudaMemcpyKind kind) {
  return api_call(__func__, [&] {
    return copy_now(rows(memory_side(to, pitch), array_side(from, across, down), width, height, kind));
  });
}

cudaError_t CUDARTAPI cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t across,
                                                 size_t down, size_t width, size_t height, cudaMemcpyKind kind,
                                                 cudaStream_t stream) {
  return api_call(__func__, [&] {
    return copy_in_stream(rows(memory_side(to, pitch), array_side(from, across, down), width, height, kind), stream);
  });
}

cudaError_t CUDARTAPI cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_across, size_t to_down, cudaArray_const_t from,
                                               size_t from_across, size_t from_down, size_t width, size_t height,
                                               cudaMemcpyKind kind) {
  return api_call(__func__, [&] {
    return copy_now(
        rows(array_side(to, to_across, to_down), array_side(from, from_across, from_down), width, height, kind));
  });
}

cudaError_t CUDARTAPI cudaMemcpyToArray(cudaArray_t to, size_t across, size_t down, const void* from, size_t count,
                                        cudaMemcpyKind kind) {
  return api_call(__func__, [&] {
    return for_rows(to, across, down, count, [&](size_t done, size_t x, size_t y, size_t width, size_t height) {
      return copy_now(
          rows(array_side(to, x, y), memory_side(static_cast<const char*>(from) + done, width), width, height, kind));
    });
  });
}

cudaError_t CUDARTAPI cudaMemcpyToArrayAsync(cudaArray_t to, size_t across, size_t down, const void* from, size_t count,
                                             cudaMemcpyKind kind, cudaStream_t stream) {
  return api_call(__func__, [&] {
    return for_rows(to, across, down, count, [&](size_t done, size_t x, size_t y, size_t width, size_t height) {
      return copy_in_stream(
          rows(array_side(to, x, y), memory_side(static_cast<const char*>(from) + done, width), width, height, kind),
          stream);
    });
  });
}

cudaError_t CUDARTAPI cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t across, size_t down, size_t count,
                                          cudaMemcpyKind kind) {
  return api_call(__func__, [&] {
    return for_rows(from, across, down, count, [&](size_t done, size_t x, size_t y, size_t width, size_t height) {
      return copy_now(
          rows(memory_side(static_cast<char*>(to) + done, width), array_side(from, x, y), width, height, kind));
    });
  });
}

cudaError_t CUDARTAPI cudaMemcpyFromArrayAsync(void* to, cudaArray_const_t from, size_t across, size_t down,
                                               size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return api_call(__func__, [&] {
    return for_rows(from, across, down, count, [&](size_t done, size_t x, size_t y, size_t width, size_t height) {
      return copy_in_stream(
          rows(memory_side(static_cast<char*>(to) + done, width), array_side(from, x, y), width, height, kind), stream);
    });
  });
}
}
