#pragma once

/// The process of a device: its keeper, the threads of its streams, and the thread that stops kernels which cannot end
/// by themselves.

#include <atomic>

#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/softd/copy.h"
#include "runtime/device/soft/softd/kernels.h"
#include "runtime/device/soft/softd/pool.h"
#include "runtime/device/soft/softd/ptx.h"

namespace hpe::device::soft {

/// Forks and returns in the child, which becomes the device, with its control socket at control_descriptor. The parent
/// becomes the keeper: it reports the device to the owner, kills it when the owner has ended or closed the keeper's
/// socket, reports how the device ended, and ends. A device whose keeper is killed is killed, too. The keeper
/// overwrites `number`, the argument that shows the device's number in lists of processes.
void start_below_keeper(char* number);

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

/// Starts the thread of a stream, which runs the stream's commands in order until the process ends.
void start_executor(device_engines& engines, unsigned stream);

/// When a device is lost, stops the launches of its teams here, whose tiles may wait for its tiles. Ends the process,
/// with the reason in its status, when a launch cannot be stopped within a second, or when a kernel that crashed or was
/// stopped has left a lock of the C library locked. Runs until the process ends.
void start_watchdog(unsigned device, fabric& shared, tile_pool& pool);

}  // namespace hpe::device::soft
