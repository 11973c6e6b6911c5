#pragma once

/// The consuming end of one stream: a thread that runs its commands in order.

#include <atomic>

#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/softd/copy.h"
#include "runtime/device/soft/softd/kernels.h"
#include "runtime/device/soft/softd/pool.h"
#include "runtime/device/soft/softd/ptx.h"

namespace hpe::device::soft {

/// The objects that the executors of a device use.
struct device_engines {
  unsigned device;
  fabric& shared;
  const address_space& memory;
  copy_engine copier;
  const kernel_table& kernels;
  tile_pool& pool;
  ptx_runner& ptx;
  // The owner, in another process, orders streams. This variable tells ThreadSanitizer in this process: a command that
  // begins happens after every command that ended before.
  std::atomic<std::uint64_t> order{0};
};

/// Starts the thread of a stream; it runs until the process ends.
void start_executor(device_engines& engines, unsigned stream);

}  // namespace hpe::device::soft
