#pragma once

/// The links between two places, and the time that bytes take on them.

#include <array>
#include <span>

#include "runtime/device/soft/shared/address_table.h"
#include "runtime/device/soft/shared/fabric.h"

namespace hpe::device::soft {

/// The links that data passes, all with one limit; none inside of a device.
struct path {
  std::array<link_clock*, 2> links{};
  unsigned length = 0;
  const link_limit* limit = nullptr;

  [[nodiscard]] bool limited() const { return length != 0 && limit->bytes_per_second != 0; }
  [[nodiscard]] std::span<link_clock* const> span() const { return {links.data(), length}; }
};

/// From one place to another: devices by number, host_location or foreign_location. `self` is the device that copies,
/// or whose kernel makes the accesses. Of the links to a device of another process, only the one at this end is known
/// and charged: the port of this process's device. Between such a device and the host, that is the port of `self`.
[[nodiscard]] path find_path(fabric& shared, unsigned self, int from, int to);

/// Bytes that a kernel moved over a path.
struct movement {
  path way;
  std::uint64_t bytes = 0;
};

/// Waits until the links have moved all of it, beginning at `start`, a time of the links that has passed. Movements
/// over different links take place at once; copies and other kernels use the links in between.
void pass_links(std::span<const movement> all, std::uint64_t start);

}  // namespace hpe::device::soft
