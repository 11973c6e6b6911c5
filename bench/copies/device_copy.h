#pragma once

#include <cstddef>

namespace hpe::bench {

/// Queues a copy between two allocations of device 0, in hpe's order: on a GPU by the driver's own call, else by hpe.
void copy_on_device(void* to, const void* from, std::size_t bytes);

}  // namespace hpe::bench
