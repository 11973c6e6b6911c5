#pragma once

/// Checks of kernel launches.

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "interpose/cudart/module/module.h"

namespace hpe::cudart {

/// Throws CUDA's error for a launch shape that the kernel or the device does not allow: cudaErrorInvalidConfiguration,
/// cudaErrorInvalidValue, cudaErrorLaunchOutOfResources, cudaErrorCooperativeLaunchTooLarge.
void check_shape(kernel& what, int device, dim3 grid, dim3 block, std::size_t shared_bytes, bool cooperative);

/// Blocks of a kernel that a multiprocessor runs at once, by the limits in the device's properties; 0 if none can run.
[[nodiscard]] int blocks_per_multiprocessor(kernel& what, int device, int block_threads, std::size_t shared_bytes);

/// Calls `launch` with the number of each stream; it queues a grid in that stream. The streams are own ones of
/// different devices. Unless the flags (cudaCooperativeLaunchMultiDevice...) say otherwise, the grids begin when all
/// streams have reached the call, and later work of each stream begins when all grids have ended. Throws
/// cudaErrorInvalidValue, cudaErrorInvalidDevice, and errors of `launch`.
void launch_on_devices(const std::vector<cudaStream_t>& streams, unsigned flags,
                       const std::function<void(std::size_t)>& launch);

/// The CUDA error for a fault of a kernel.
[[nodiscard]] cudaError_t code_of_fault(hpeFault fault) noexcept;

}  // namespace hpe::cudart
