#pragma once

#include <cstddef>

namespace hpe::bench {

/// Copies between two allocations on device 0. On a GPU, queues the driver's copy as device work of hpe and returns; on
/// a soft device, calls hpe::copy().
void copy_on_device(void* to, const void* from, std::size_t bytes);

}  // namespace hpe::bench
