#pragma once

#include <cstddef>

namespace hpe::bench {

/// Queues a copy between two allocations of device 0 as device work of hpe: on a GPU by a call of the driver, on a soft
/// device by hpe.
void copy_on_device(void* to, const void* from, std::size_t bytes);

}  // namespace hpe::bench
