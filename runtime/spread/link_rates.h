#pragma once

/// The rates of a machine's devices and links, from which the planner predicts the time of launches. Units: bytes,
/// bytes per second, seconds.

#include <cstdint>

#include "runtime/spread/model/launch.h"
#include "runtime/spread/move_price.h"

namespace hpe::spread {

struct machine {
  std::uint32_t devices = 1;
  double local_rate = 3.4e12;   // accesses of a kernel to the memory of the device that runs it
  double memory_rate = 3.4e12;  // accesses of all devices together to the memory of one device
  double read_rate = 3.2e11;    // reads of another device's memory over a link, in one direction
  double write_rate = 3.5e11;   // writes to another device's memory over a link, in one direction
  bool shares_ports =
      true;  // true if each device has one port to a switch, false if each pair of devices has its own link
  double host_rate = 5e10;         // accesses of one device to host memory
  double host_memory_rate = 2e11;  // accesses of all devices together to host memory
  double copy_rate = 3.4e11;       // copies of replicas between two devices
  double instruction_rate = 2e13;  // thread instructions per second on one device
  double launch_seconds = 6e-6;    // host time to launch one part of a spread launch and to wait for it
  /// The measured time of the kernel's launches divided by the predicted time (way_record::scale). Times that do not
  /// depend on the kernel are divided by this number, so that they have the right ratio to the predicted times.
  double scale = 1;
  // The initial price, before a move was measured: seconds per range, and seconds per byte. The first is an estimate of
  // the driver's time to create, map and unmap memory. The second was measured on two H100: a move of 1 GB takes about
  // 10 ms, including allocating and clearing memory.
  move_price moves{1e-4, 1e-11};
  bool moves_empty_arrays_free = true;  // whether moving an array that was never written takes no time
  // The size of the largest array that each device can replicate.
  std::uint64_t replica_bytes = ~std::uint64_t{0};
  /// The device that runs launches that are not spread. If negative, the device whose memory contains most bytes of the
  /// launch's arrays runs them.
  device_number alone = -1;
};

}  // namespace hpe::spread
