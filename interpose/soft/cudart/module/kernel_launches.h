#pragma once

/// Functions that check and queue launches of kernels.

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "interpose/soft/cudart/module/cudart_module.h"

namespace hpe::cudart {

/// Returns the number of blocks of a grid, or of threads of a block; too_many_bytes (box.h) if it exceeds the range of
/// std::size_t.
[[nodiscard]] std::size_t volume(dim3 shape);

/// Throws CUDA's error for a launch shape that the kernel or the device does not allow: cudaErrorInvalidConfiguration,
/// cudaErrorInvalidValue, cudaErrorLaunchOutOfResources or cudaErrorCooperativeLaunchTooLarge.
void check_shape(kernel& what, int device, dim3 grid, dim3 block, std::size_t shared_bytes, bool cooperative);

/// Returns the number of blocks of a kernel that a multiprocessor can run at once, according to the limits in the
/// device's properties; 0 if it cannot run even one block.
[[nodiscard]] int blocks_per_multiprocessor(kernel& what, int device, int block_threads, std::size_t shared_bytes);

/// Calls launch(n) for the index n of each stream; launch(n) queues a grid on that stream. The program must have
/// created the streams, each on another device. By default, the grids begin when all streams have reached the call, and
/// later work on each stream begins when all grids have ended; the flags (cudaCooperativeLaunchMultiDevice...) can
/// switch off each of these waits. Throws cudaErrorInvalidValue, cudaErrorInvalidDevice, and errors of `launch`.
void launch_on_devices(const std::vector<cudaStream_t>& streams, unsigned flags,
                       const std::function<void(std::size_t)>& launch);

/// Returns the CUDA error code for a fault of a kernel.
[[nodiscard]] cudaError_t code_of_fault(hpeFault fault) noexcept;

}  // namespace hpe::cudart
