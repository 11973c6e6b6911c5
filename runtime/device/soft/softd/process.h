#pragma once

/// Functions that start the parts of a device process: its keeper, the threads of its streams, and the watchdog, a
/// thread that stops launches which wait for a lost device.

#include <atomic>

#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/softd/copy_engine.h"
#include "runtime/device/soft/softd/ptx_runner.h"
#include "runtime/device/soft/softd/softd_kernels.h"
#include "runtime/device/soft/softd/tile_pool.h"

namespace hpe::device::soft {

/// Forks. Returns in the child process, which becomes the device and has its control socket at the descriptor
/// control_descriptor. The parent process becomes the keeper. The keeper reports the device's process number to the
/// owner, kills the device when the owner has ended or closed the keeper's socket, reports how the device ended, and
/// ends. If the keeper is killed, the operating system kills the device, too. `number`: the command-line argument with
/// the device's number. The keeper overwrites this argument with dashes in its own process, so that lists of processes
/// show the number only for the device.
void start_below_keeper(char* number);

/// The objects that the streams' threads of a device use.
struct device_engines {
  unsigned device;
  fabric& shared;
  const address_space& memory;
  copy_engine copier;
  const softd_kernels& kernels;
  tile_pool& pool;
  ptx_runner& ptx;
  // The owner orders the commands of different streams, but ThreadSanitizer cannot see this order, because the owner is
  // another process. Each command reads and writes this variable, so ThreadSanitizer sees that a command begins after
  // all commands that ended earlier.
  std::atomic<std::uint64_t> order{0};
};

/// Starts the thread of a stream, which runs the stream's commands in order until the process ends.
void start_executor(device_engines& engines, unsigned stream);

/// Starts the watchdog, which runs until the process ends. When another device is lost, the watchdog stops launches on
/// this device whose teams include the lost device, because their tiles may wait for tiles on that device. The watchdog
/// ends the process, and writes the reason to the device's status, when a launch cannot be stopped within a second, or
/// when a kernel that crashed or was stopped has left a lock of the C library locked.
void start_watchdog(unsigned device, fabric& shared, tile_pool& pool);

}  // namespace hpe::device::soft
