// The functions for copies and memsets. hpe determines from an address whether the memory is on the host or on which
// device it is, so the functions for host, device and peer copies are all the same.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/memory/copying.h"
#include "interpose/soft/libcuda/call.h"
#include "interpose/soft/libcuda/contexts.h"
#include "interpose/soft/libcuda/memory/copy_shapes.h"

using namespace hpe::libcuda;
using hpe::cudart::copy_in_stream;
using hpe::cudart::copy_now;
using hpe::cudart::flat_copy;
using hpe::cudart::set_in_stream;
using hpe::cudart::set_now;
using hpe::libcuda::pointer_of;

namespace {

CUresult copy(const char* function, const cudaMemcpy3DParms& what) {
  return in_context(function, [&] { return copy_now(what); });
}

CUresult copy(const char* function, const cudaMemcpy3DParms& what, CUstream stream) {
  return in_context(function, [&] { return copy_in_stream(what, stream); });
}

/// Executes a copy that a structure of the driver describes. Converts the structure inside in_context(), because the
/// conversion may throw.
template <class Shape>
CUresult copy_shape(const char* function, const Shape* shape) {
  return in_context(function, [&] { return copy_now(copy_of(given(shape))); });
}

template <class Shape>
CUresult copy_shape(const char* function, const Shape* shape, CUstream stream) {
  return in_context(function, [&] { return copy_in_stream(copy_of(given(shape)), stream); });
}

/// Returns the description of a memset of rows; elements have the size of `value`, and `width` is the number of
/// elements in a row.
template <class Value>
cudaMemsetParams set(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width, std::size_t height) {
  cudaMemsetParams what{};
  what.dst = pointer_of(to);
  what.pitch = pitch;
  what.value = value;
  what.elementSize = sizeof(Value);
  what.width = width;
  what.height = height;
  hpe::cudart::require(to % sizeof(Value) == 0 && (height <= 1 || pitch % sizeof(Value) == 0), cudaErrorInvalidValue);
  return what;
}

template <class Value>
CUresult set(const char* function, CUdeviceptr to, std::size_t pitch, Value value, std::size_t width,
             std::size_t height) {
  return in_context(function, [&] { return set_now(set(to, pitch, value, width, height)); });
}

template <class Value>
CUresult set(const char* function, CUdeviceptr to, std::size_t pitch, Value value, std::size_t width,
             std::size_t height, CUstream stream) {
  return in_context(function, [&] { return set_in_stream(set(to, pitch, value, width, height), stream); });
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy("cuMemcpy", flat_copy(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDefault));
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy("cuMemcpyAsync", flat_copy(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDefault), stream);
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy("cuMemcpyHtoD_v2", flat_copy(pointer_of(to), from, bytes, cudaMemcpyHostToDevice));
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return copy("cuMemcpyHtoDAsync_v2", flat_copy(pointer_of(to), from, bytes, cudaMemcpyHostToDevice), stream);
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy("cuMemcpyDtoH_v2", flat_copy(to, pointer_of(from), bytes, cudaMemcpyDeviceToHost));
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy("cuMemcpyDtoHAsync_v2", flat_copy(to, pointer_of(from), bytes, cudaMemcpyDeviceToHost), stream);
}

CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy("cuMemcpyDtoD_v2", flat_copy(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDeviceToDevice));
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy("cuMemcpyDtoDAsync_v2", flat_copy(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDeviceToDevice),
              stream);
}

CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                              std::size_t bytes) {
  return in_context("cuMemcpyPeer", [&] {
    return cudaMemcpyPeer(pointer_of(to), contexts().find(to_context)->device(), pointer_of(from),
                          contexts().find(from_context)->device(), bytes);
  });
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                   std::size_t bytes, CUstream stream) {
  return in_context("cuMemcpyPeerAsync", [&] {
    return cudaMemcpyPeerAsync(pointer_of(to), contexts().find(to_context)->device(), pointer_of(from),
                               contexts().find(from_context)->device(), bytes, stream);
  });
}

CUresult CUDAAPI cuMemcpy2D_v2(const CUDA_MEMCPY2D* what) { return copy_shape("cuMemcpy2D_v2", what); }
CUresult CUDAAPI cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* what) {
  return copy_shape("cuMemcpy2DUnaligned_v2", what);
}
CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* what, CUstream stream) {
  return copy_shape("cuMemcpy2DAsync_v2", what, stream);
}
CUresult CUDAAPI cuMemcpy3D_v2(const CUDA_MEMCPY3D* what) { return copy_shape("cuMemcpy3D_v2", what); }
CUresult CUDAAPI cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* what, CUstream stream) {
  return copy_shape("cuMemcpy3DAsync_v2", what, stream);
}
CUresult CUDAAPI cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* what) { return copy_shape("cuMemcpy3DPeer", what); }
CUresult CUDAAPI cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* what, CUstream stream) {
  return copy_shape("cuMemcpy3DPeerAsync", what, stream);
}

// The versions of CUDA 12, which return the index of the copy that failed; SIZE_MAX means that the index is not known.

CUresult CUDAAPI cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes, std::size_t count,
                                    CUmemcpyAttributes* attributes, std::size_t* firsts, std::size_t attribute_count,
                                    std::size_t* wrong, CUstream stream) {
  if (wrong != nullptr) *wrong = SIZE_MAX;
  return cuMemcpyBatchAsync_v2(to, from, bytes, count, attributes, firsts, attribute_count, stream);
}

CUresult CUDAAPI cuMemcpy3DBatchAsync(std::size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, std::size_t* wrong,
                                      unsigned long long flags, CUstream stream) {
  if (wrong != nullptr) *wrong = SIZE_MAX;
  return cuMemcpy3DBatchAsync_v2(count, copies, flags, stream);
}

CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return set("cuMemsetD8_v2", to, count, value, count, 1);
}
CUresult CUDAAPI cuMemsetD16_v2(CUdeviceptr to, unsigned short value, std::size_t count) {
  return set("cuMemsetD16_v2", to, count * 2, value, count, 1);
}
CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr to, unsigned value, std::size_t count) {
  return set("cuMemsetD32_v2", to, count * 4, value, count, 1);
}
CUresult CUDAAPI cuMemsetD2D8_v2(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                                 std::size_t height) {
  return set("cuMemsetD2D8_v2", to, pitch, value, width, height);
}
CUresult CUDAAPI cuMemsetD2D16_v2(CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                                  std::size_t height) {
  return set("cuMemsetD2D16_v2", to, pitch, value, width, height);
}
CUresult CUDAAPI cuMemsetD2D32_v2(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                                  std::size_t height) {
  return set("cuMemsetD2D32_v2", to, pitch, value, width, height);
}
CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return set("cuMemsetD8Async", to, count, value, count, 1, stream);
}
CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
  return set("cuMemsetD16Async", to, count * 2, value, count, 1, stream);
}
CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return set("cuMemsetD32Async", to, count * 4, value, count, 1, stream);
}
CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                                   std::size_t height, CUstream stream) {
  return set("cuMemsetD2D8Async", to, pitch, value, width, height, stream);
}
CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                                    std::size_t height, CUstream stream) {
  return set("cuMemsetD2D16Async", to, pitch, value, width, height, stream);
}
CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                                    std::size_t height, CUstream stream) {
  return set("cuMemsetD2D32Async", to, pitch, value, width, height, stream);
}
}
