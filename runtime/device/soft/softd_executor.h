#pragma once

/// The consuming end of one stream: a thread that runs its commands in order.

#include <atomic>

#include "runtime/device/soft/fabric.h"
#include "runtime/device/soft/softd_copy.h"
#include "runtime/device/soft/softd_kernels.h"
#include "runtime/device/soft/softd_pool.h"
#include "runtime/device/soft/softd_ptx_runner.h"

namespace hpe::device::soft {

/// What the executors of a device work with.
struct softd_engines {
  unsigned device;
  fabric& shared;
  const softd_memory& memory;
  softd_copier copier;
  const softd_kernels& kernels;
  softd_pool& pool;
  softd_ptx_runner& ptx;
  // Order between streams comes through the owner, in another process. This says it inside this one, for
  // ThreadSanitizer: a command that begins is after every command that ended before.
  std::atomic<std::uint64_t> order{0};
};

/// Starts the thread of a stream; it runs until the process ends.
void start_executor(softd_engines& engines, stream_block& stream);

}  // namespace hpe::device::soft
