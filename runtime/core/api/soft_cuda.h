#pragma once

/// The CUDA driver of soft devices, in programs that `hpe run --cuda soft` has started.

#include "hpe/hpe.h"

namespace hpe::core::soft_cuda {

/// Whether the process has this driver.
[[nodiscard]] bool is_loaded();

/// Calls function(stream, argument) in the calling thread with a stream of the driver, and queues the work that the
/// function has queued there when it has returned. Throws HPE_ERROR_LAUNCH_FAILED.
void enqueue(unsigned device, hpeEnqueueFunction function, void* argument);

}  // namespace hpe::core::soft_cuda
