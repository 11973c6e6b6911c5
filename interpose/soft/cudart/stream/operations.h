#pragma once

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "interpose/soft/cudart/module/launch_attributes.h"
#include "interpose/soft/cudart/stream/stream_operation.h"

// Operations whose parameters a program can read and change in a graph. module/kernel_launches.cpp and
// api/memory/copy.cpp define the prepare() of each operation. The members have the values that the program passed.

namespace hpe::cudart {

class kernel_operation final : public stream_operation {
 public:
  const void* function = nullptr;  ///< like the argument of cudaLaunchKernel: a host function or a cudaKernel_t
  dim3 grid{1, 1, 1};
  dim3 block{1, 1, 1};
  std::size_t shared_bytes = 0;
  launch_attributes attributes;
  std::vector<std::byte> arguments;             ///< the bytes of the kernel's parameters, in the kernel's layout
  std::vector<std::uint32_t> argument_offsets;  ///< the offset of each argument in `arguments`

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
  cudaError_t prepare(int device, stream_task& out) const override;

  /// Copies the arguments of a launch (kernelParams, or the packed form in `extra`) to `arguments`, at the offsets that
  /// the kernel's description contains. Throws cudaErrorInvalidDeviceFunction for a function that was not registered,
  /// and cudaErrorInvalidValue if arguments are missing. Returns cudaSuccess.
  cudaError_t take(const cudaKernelNodeParams& launch, int device);
};

/// A copy in one to three dimensions; the extent of a one-dimensional copy is {bytes, 1, 1}. As in CUDA, the extent
/// counts elements if an array takes part in the copy.
class copy_operation final : public stream_operation {
 public:
  cudaMemcpy3DParms parameters{};

  cudaGraphNodeType type() const override { return cudaGraphNodeTypeMemcpy; }
  cudaError_t prepare(int device, stream_task& out) const override;
};

class set_operation final : public stream_operation {
 public:
  cudaMemsetParams parameters{};
  std::size_t depth = 1;         ///< the number of planes, each with parameters.height rows
  std::size_t plane_height = 1;  ///< the distance in rows from one plane to the next

  cudaGraphNodeType type() const override { return cudaGraphNodeTypeMemset; }
  cudaError_t prepare(int device, stream_task& out) const override;
};

}  // namespace hpe::cudart
