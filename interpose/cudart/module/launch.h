#pragma once

/// Checks of kernel launches.

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <memory>

#include "interpose/cudart/module/module.h"

namespace hpe::cudart {

/// Throws CUDA's error for a launch shape that the kernel or the device does not allow: cudaErrorInvalidConfiguration,
/// cudaErrorInvalidValue, cudaErrorLaunchOutOfResources, cudaErrorCooperativeLaunchTooLarge.
void check_shape(kernel& what, int device, dim3 grid, dim3 block, std::size_t shared_bytes, bool cooperative);

/// Blocks of a kernel that a multiprocessor runs at once, by the limits in the device's properties; 0 if none can run.
[[nodiscard]] int blocks_per_multiprocessor(kernel& what, int device, int block_threads, std::size_t shared_bytes);

/// The CUDA error for a fault of a kernel.
[[nodiscard]] cudaError_t code_of_fault(hpeFault fault) noexcept;

}  // namespace hpe::cudart
