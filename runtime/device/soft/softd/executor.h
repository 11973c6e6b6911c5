#pragma once

/// The consuming end of one stream: a thread that runs its commands in order.

#include <atomic>

#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/softd/copy.h"
#include "runtime/device/soft/softd/kernels.h"
#include "runtime/device/soft/softd/pool.h"
#include "runtime/device/soft/softd/ptx.h"

namespace hpe::device::soft {

/// What the executors of a device work with.
struct device_engines {
  unsigned device;
  fabric& shared;
  const address_space& memory;
  copy_engine copier;
  const kernel_table& kernels;
  tile_pool& pool;
  ptx_runner& ptx;
  // Order between streams comes through the owner, in another process. This says it inside this one, for
  // ThreadSanitizer: a command that begins is after every command that ended before.
  std::atomic<std::uint64_t> order{0};
};

/// Starts the thread of a stream; it runs until the process ends.
void start_executor(device_engines& engines, unsigned stream);

}  // namespace hpe::device::soft
