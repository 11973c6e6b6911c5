#pragma once

/// A launch as the decision sees it: shape, parameters, the arrays that the kernel uses and where they lie, and the
/// rates of the machine. Plain values: no device, no driver. Bytes, bytes per second, seconds.

#include <array>
#include <cstdint>
#include <vector>

namespace hpe::spread {

using dimension = std::array<std::uint32_t, 3>;

/// Devices are numbered from 0 in the order in which the caller spreads launches; a home below 0 is host memory.
using device_number = std::int32_t;
inline constexpr device_number host = -1;

/// Bytes first <= offset < last of an allocation, and the device whose memory they are.
struct home_run {
  std::uint64_t first = 0, last = 0;
  device_number home = 0;
  bool operator==(const home_run&) const = default;
};

/// An allocation and where its bytes are. Several pointers of one launch may point into the same allocation.
struct allocation {
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t granule = 0;    // the unit in which homes may change; 0: the allocation cannot move
  std::vector<home_run> homes;  // ascending, without gaps; neighbours have different homes
  bool may_replicate = true;    // all writes to it are known, so that copies of it can be valid
  bool is_replicated = false;   // each device has a valid copy; `homes` tells where the original is
  bool is_empty = false;        // nothing has been written: a move copies nothing
  /// Another number whenever any of the above has changed, or the allocation is another one at the same address.
  std::uint64_t version = 0;

  [[nodiscard]] device_number home_of(std::uint64_t offset) const;
};

struct launch {
  dimension grid{1, 1, 1}, block{1, 1, 1};
  /// The kernel's parameters, as a buffer for a launch has them: kernel_model tells the offsets of pointers.
  const void* parameters = nullptr;
  std::uint64_t parameter_bytes = 0;
};

struct machine {
  std::uint32_t devices = 1;
  double local_rate = 3.4e12;      // a kernel's accesses to its own device's memory
  double read_rate = 3.2e11;       // reads of another device's memory: the link between two devices, one way
  double write_rate = 3.5e11;      // writes to another device's memory, likewise
  double host_rate = 5e10;         // accesses to host memory
  double move_rate = 3.4e11;       // moves of arrays to other devices
  double copy_rate = 3.4e11;       // copies between two devices, which make replicas
  double instruction_rate = 2e13;  // instructions of threads that one device executes
  double launch_seconds = 6e-6;    // that a launch on one more device takes the host, and the wait for it
  double granule_seconds = 3e-5;   // to give one granule another home, beside the copy
  std::uint64_t replica_bytes = ~std::uint64_t{0};  // the largest array that devices can have a replica of
  /// The device that runs launches which are not spread; below 0: the one with most of the launch's bytes.
  device_number alone = -1;
};

}  // namespace hpe::spread
