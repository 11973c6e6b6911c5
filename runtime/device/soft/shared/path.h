#pragma once

/// The links between two places, and the time that bytes take on them.

#include <array>
#include <span>

#include "runtime/device/soft/shared/address_table.h"
#include "runtime/device/soft/shared/fabric.h"

namespace hpe::device::soft {

/// The links that data passes, all with the same limit. Data that stays inside a device passes no link.
struct path {
  std::array<link_clock*, 2> links{};
  unsigned length = 0;
  const link_limit* limit = nullptr;

  [[nodiscard]] bool limited() const { return length != 0 && limit->bytes_per_second != 0; }
  [[nodiscard]] std::span<link_clock* const> span() const { return {links.data(), length}; }
};

/// Returns the path from one place to another; each place is the number of a device, host_location or foreign_location.
/// `self` is the device that copies, or whose kernel makes the accesses. If one place is a device of another process,
/// hpe knows only the port of this process's device, and charges only this port. Between a device of another process
/// and the host, this is the port of `self`.
[[nodiscard]] path find_path(fabric& shared, unsigned self, int from, int to);

/// Bytes that a kernel moved over a path.
struct movement {
  path way;
  std::uint64_t bytes = 0;
};

/// Waits until the links have moved all of the bytes. `start`: the link time, in the past, at which the movements
/// began. Movements over different links run at the same time. Copies and other kernels can use the links between the
/// pieces.
void pass_links(std::span<const movement> all, std::uint64_t start);

}  // namespace hpe::device::soft
