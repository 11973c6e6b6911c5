#pragma once

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "interpose/cudart/module/launch_attributes.h"
#include "interpose/cudart/stream/operation.h"

// The operations whose parameters a program can read and change in a graph. prepare() of each is in the file of its
// family (launch.cpp, copy.cpp). The values are those that the program gave.

namespace hpe::cudart {

class kernel_operation final : public operation {
 public:
  const void* function = nullptr;  ///< as in cudaLaunchKernel: a host function or a cudaKernel_t
  dim3 grid{1, 1, 1};
  dim3 block{1, 1, 1};
  std::size_t shared_bytes = 0;
  launch_attributes attributes;
  std::vector<std::byte> arguments;             ///< the kernel's parameters as they lie in memory
  std::vector<std::uint32_t> argument_offsets;  ///< the offset of each argument in these bytes

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

  /// Copies the arguments of a launch (kernelParams, or the packed form in `extra`) as the kernel's description lays
  /// them out. cudaErrorInvalidDeviceFunction for an unregistered function, cudaErrorInvalidValue for missing
  /// arguments.
  cudaError_t take(const cudaKernelNodeParams& launch, int device);
};

/// A copy in one to three dimensions; in one, the extent is {bytes, 1, 1}. As in CUDA, an extent with an array counts
/// elements.
class copy_operation final : public operation {
 public:
  cudaMemcpy3DParms parameters{};

  cudaGraphNodeType type() const override { return cudaGraphNodeTypeMemcpy; }
  cudaError_t prepare(int device, work& out) const override;
};

class set_operation final : public operation {
 public:
  cudaMemsetParams parameters{};
  std::size_t depth = 1;         ///< planes of parameters.height rows each
  std::size_t plane_height = 1;  ///< rows from one plane to the next

  cudaGraphNodeType type() const override { return cudaGraphNodeTypeMemset; }
  cudaError_t prepare(int device, work& out) const override;
};

}  // namespace hpe::cudart
