#pragma once

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "interpose/cudart/launch_attributes.h"
#include "interpose/cudart/operation.h"

// The operations of which programs can read and change the parameters in a graph. prepare() of each is in the file of
// its family (launch.cpp, copy.cpp, memset.cpp); the values are as the program gave them.

namespace hpe::cudart {

class kernel_operation final : public operation {
 public:
  const void* function = nullptr;  ///< as given to cudaLaunchKernel: a host function, or a cudaKernel_t
  dim3 grid{1, 1, 1};
  dim3 block{1, 1, 1};
  std::size_t shared_bytes = 0;
  launch_attributes attributes;
  std::vector<std::byte> arguments;             ///< as the kernel's parameters lie in memory
  std::vector<std::uint32_t> argument_offsets;  ///< of each in these bytes

  std::shared_ptr<const kernel_operation> with(launch_attributes others) const {
    auto result = std::make_shared<kernel_operation>();
    result->function = function;
    result->grid = grid;
    result->block = block;
    result->shared_bytes = shared_bytes;
    result->attributes = std::move(others);
    result->arguments = arguments;
    result->argument_offsets = argument_offsets;
    return result;
  }

  cudaGraphNodeType type() const override { return cudaGraphNodeTypeKernel; }
  cudaError_t prepare(int device, work& out) const override;

  /// Copies the arguments of a launch (kernelParams, or the packed form in extra) by what is known of the kernel.
  /// cudaErrorInvalidDeviceFunction for a function that nobody registered, cudaErrorInvalidValue for missing arguments.
  cudaError_t take(const cudaKernelNodeParams& launch, int device);
};

/// One to three dimensions; one dimension is an extent of {bytes, 1, 1}. Arrays count in elements, as CUDA says.
class copy_operation final : public operation {
 public:
  cudaMemcpy3DParms parameters{};

  cudaGraphNodeType type() const override { return cudaGraphNodeTypeMemcpy; }
  cudaError_t prepare(int device, work& out) const override;
};

class set_operation final : public operation {
 public:
  cudaMemsetParams parameters{};
  std::size_t depth = 1;         ///< planes of parameters.height rows each, one behind the other
  std::size_t plane_height = 1;  ///< rows from one plane to the next

  cudaGraphNodeType type() const override { return cudaGraphNodeTypeMemset; }
  cudaError_t prepare(int device, work& out) const override;
};

}  // namespace hpe::cudart
