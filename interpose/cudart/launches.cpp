// The calls that launch kernels.

#include <cuda_runtime_api.h>

#include <climits>
#include <memory>
#include <utility>

#include "interpose/cudart/context.h"
#include "interpose/cudart/launch.h"
#include "interpose/cudart/module_table.h"
#include "interpose/cudart/operations.h"
#include "interpose/cudart/stream.h"

using namespace hpe::cudart;

namespace {

cudaError_t launch(const cudaKernelNodeParams& parameters, bool cooperative, cudaStream_t handle) {
  const std::shared_ptr<stream> where = process().find_stream(handle);
  auto made = std::make_shared<kernel_operation>();
  check(made->take(parameters, where->device()));
  made->cooperative = cooperative;
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

bool asks_for_cluster(const cudaLaunchAttribute& attribute) {
  const auto& shape = attribute.val.clusterDim;
  return attribute.id == cudaLaunchAttributeClusterDimension && shape.x * shape.y * shape.z > 1;
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                       std::size_t shared_bytes, cudaStream_t stream) {
  return api_call("cudaLaunchKernel",
                  [&] { return launch(parameters_of(function, grid, block, arguments, shared_bytes), false, stream); });
}

cudaError_t CUDARTAPI cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                                  std::size_t shared_bytes, cudaStream_t stream) {
  return api_call("cudaLaunchCooperativeKernel",
                  [&] { return launch(parameters_of(function, grid, block, arguments, shared_bytes), true, stream); });
}

/// Of the attributes, those that change what a program computes count: cooperative launches, and clusters, which soft
/// devices do not have. A launch that may begin early (programmatic stream serialization) begins when it would anyway.
cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return api_call("cudaLaunchKernelExC", [&] {
    require(config != nullptr && (config->numAttrs == 0 || config->attrs != nullptr), cudaErrorInvalidValue);
    bool cooperative = false;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      const cudaLaunchAttribute& attribute = config->attrs[i];
      if (attribute.id == cudaLaunchAttributeCooperative) cooperative = attribute.val.cooperative != 0;
      require(!asks_for_cluster(attribute), cudaErrorNotSupported);
    }
    return launch(parameters_of(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes),
                  cooperative, config->stream);
  });
}
}
