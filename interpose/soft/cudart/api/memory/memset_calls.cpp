// The functions that set memory.

#include <cuda_runtime_api.h>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/memory/copying.h"

using namespace hpe::cudart;

namespace {

cudaMemsetParams bytes_to_set(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  cudaMemsetParams what{};
  what.dst = to;
  what.pitch = pitch;
  what.value = static_cast<unsigned>(value) & 0xffU;
  what.elementSize = 1;
  what.width = width;
  what.height = height;
  return what;
}

cudaMemsetParams box_to_set(const cudaPitchedPtr& to, int value, const cudaExtent& extent) {
  return bytes_to_set(to.ptr, to.pitch, value, extent.width, extent.height);
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaMemset(void* to, int value, std::size_t bytes) {
  return api_call("cudaMemset", [&] { return set_now(bytes_to_set(to, bytes, value, bytes, 1)); });
}

cudaError_t CUDARTAPI cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return api_call("cudaMemsetAsync", [&] { return set_in_stream(bytes_to_set(to, bytes, value, bytes, 1), stream); });
}

cudaError_t CUDARTAPI cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return api_call("cudaMemset2D", [&] { return set_now(bytes_to_set(to, pitch, value, width, height)); });
}

cudaError_t CUDARTAPI cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                                        cudaStream_t stream) {
  return api_call("cudaMemset2DAsync",
                  [&] { return set_in_stream(bytes_to_set(to, pitch, value, width, height), stream); });
}

cudaError_t CUDARTAPI cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return api_call("cudaMemset3D", [&] { return set_now(box_to_set(to, value, extent), extent.depth, to.ysize); });
}

cudaError_t CUDARTAPI cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
  return api_call("cudaMemset3DAsync",
                  [&] { return set_in_stream(box_to_set(to, value, extent), stream, extent.depth, to.ysize); });
}
}
