#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/device/device.h"

namespace hpe::transfer {

/// Divides devices into groups. Each group has its own threads and buffers, which are placed near the group's devices.
/// With near_devices(), the devices of one NUMA node form a group. By default all devices are one group, and threads
/// and memory are not bound to a node.
struct device_groups {
  std::vector<unsigned> group_of{};  ///< group of each device; groups are numbered from 0 without gaps. Empty: all
                                     ///< devices are in group 0

  /// Each thread that serves a group calls this function first.
  std::function<void(unsigned group)> settle_thread = [](unsigned) {};
  /// Called for the memory of all buffers of a group, before the pages of this memory exist.
  std::function<void(unsigned group, void* memory, std::size_t bytes)> settle_memory = [](unsigned, void*,
                                                                                          std::size_t) {};

  /// The group of a device; 0 for a number that no device has.
  [[nodiscard]] unsigned group(unsigned device) const noexcept {
    return device < group_of.size() ? group_of[device] : 0;
  }
  [[nodiscard]] unsigned groups() const noexcept {
    unsigned last = 0;
    for (const unsigned g : group_of) last = g > last ? g : last;
    return last + 1;
  }
};

/// Groups the devices by NUMA node. Threads and memory of a group are placed on the group's node, if this node is
/// known. If no device's node is known (for example on a machine with a single node), all devices are one group and
/// nothing is bound.
[[nodiscard]] device_groups near_devices(device::device_set& devices);

}  // namespace hpe::transfer
