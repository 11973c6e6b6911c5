#pragma once

/// Kernels on their way to a device.

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <memory>

#include "interpose/cudart/module.h"

namespace hpe::cudart {

/// Throws what CUDA says of a shape that a kernel or a device cannot have: cudaErrorInvalidConfiguration,
/// cudaErrorInvalidValue, cudaErrorLaunchOutOfResources, cudaErrorCooperativeLaunchTooLarge.
void check_shape(kernel& what, int device, dim3 grid, dim3 block, std::size_t shared_bytes, bool cooperative);

/// Blocks of a kernel that a multiprocessor runs at once, by the limits that the device tells; 0 for what cannot run.
[[nodiscard]] int blocks_per_multiprocessor(kernel& what, int device, int block_threads, std::size_t shared_bytes);

/// The error of CUDA's that a kernel's fault is.
[[nodiscard]] cudaError_t code_of_fault(hpeFault fault) noexcept;

}  // namespace hpe::cudart
