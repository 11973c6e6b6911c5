// The functions that launch kernels.

#include <cuda_runtime_api.h>

#include <climits>
#include <memory>
#include <utility>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/module/kernel_launches.h"
#include "interpose/soft/cudart/module/module_table.h"
#include "interpose/soft/cudart/stream/cudart_stream.h"
#include "interpose/soft/cudart/stream/operations.h"

using namespace hpe::cudart;

namespace {

cudaError_t launch(const cudaKernelNodeParams& parameters, launch_attributes attributes, cudaStream_t handle) {
  const std::shared_ptr<cudart_stream> where = process().find_stream(handle);
  auto made = std::make_shared<kernel_operation>();
  check(made->take(parameters, where->device()));
  made->attributes = std::move(attributes);
  return submit(*where, std::move(made));
}

cudaKernelNodeParams parameters_of(const void* function, dim3 grid, dim3 block, void** arguments,
                                   std::size_t shared_bytes) {
  require(shared_bytes <= UINT_MAX, cudaErrorInvalidValue);
  cudaKernelNodeParams parameters{};
  parameters.func = const_cast<void*>(function);
  parameters.gridDim = grid;
  parameters.blockDim = block;
  parameters.sharedMemBytes = static_cast<unsigned>(shared_bytes);
  parameters.kernelParams = arguments;
  return parameters;
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                       std::size_t shared_bytes, cudaStream_t stream) {
  return api_call("cudaLaunchKernel",
                  [&] { return launch(parameters_of(function, grid, block, arguments, shared_bytes), {}, stream); });
}

cudaError_t CUDARTAPI cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                                  std::size_t shared_bytes, cudaStream_t stream) {
  return api_call("cudaLaunchCooperativeKernel", [&] {
    return launch(parameters_of(function, grid, block, arguments, shared_bytes),
                  launch_attributes::of_cooperative_launch(), stream);
  });
}

/// The attribute for programmatic stream serialization has no effect: the launch begins when all earlier work on the
/// stream has ended.
cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return api_call("cudaLaunchKernelExC", [&] {
    launch_attributes attributes = launch_attributes::of(config);
    return launch(parameters_of(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes),
                  std::move(attributes), config->stream);
  });
}
}
