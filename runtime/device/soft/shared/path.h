#pragma once

/// The simulated links between two memories, and the time that transfers take on these links.

#include <array>
#include <span>

#include "runtime/device/soft/shared/address_table.h"
#include "runtime/device/soft/shared/fabric.h"

namespace hpe::device::soft {

/// The links that a transfer uses, all with the same limit. A transfer inside one device uses no link.
struct path {
  std::array<link_clock*, 2> links{};
  unsigned length = 0;
  const link_limit* limit = nullptr;

  [[nodiscard]] bool limited() const { return length != 0 && limit->bytes_per_second != 0; }
  [[nodiscard]] std::span<link_clock* const> span() const { return {links.data(), length}; }
};

/// Returns the path from one memory to another. `from` and `to`: a device number, host_location or foreign_location.
/// `self`: the device that runs the copy or the kernel. A path from or to a device of another process contains only one
/// link, the port of this process's device, because the fabric does not contain the other device's port. Between a
/// device of another process and the host, the path contains the port of `self`.
[[nodiscard]] path find_path(fabric& shared, unsigned self, int from, int to);

/// The bytes that a kernel transferred over one path.
struct movement {
  path way;
  std::uint64_t bytes = 0;
};

/// Waits until the links have transferred the bytes of all movements. `start`: the link time at which the transfers
/// began; it is in the past. Transfers over different links run at the same time. Copies and other kernels can use the
/// links between two bursts of a transfer.
void pass_links(std::span<const movement> all, std::uint64_t start);

}  // namespace hpe::device::soft
