#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/device/device.h"

namespace hpe::transfer {

/// Which devices are served by the same threads and buffers, and how these are placed near the devices. Devices of one
/// NUMA node are one group. By default all devices are one group, and nothing is bound.
struct device_groups {
  std::vector<unsigned> group_of{};  ///< by device; groups are numbered from 0 without gaps. Empty: all are group 0

  /// Called first in each thread that serves a group.
  std::function<void(unsigned group)> settle_thread = [](unsigned) {};
  /// Called for memory that serves a group before its pages exist.
  std::function<void(unsigned group, void* memory, std::size_t bytes)> settle_memory = [](unsigned, void*,
                                                                                          std::size_t) {};

  /// The group of a device; 0 for a number that is no device's.
  [[nodiscard]] unsigned group(unsigned device) const noexcept {
    return device < group_of.size() ? group_of[device] : 0;
  }
  [[nodiscard]] unsigned groups() const noexcept {
    unsigned last = 0;
    for (const unsigned g : group_of) last = g > last ? g : last;
    return last + 1;
  }
};

/// Groups the devices by NUMA node, and places the threads and memory of a group on its node. If no device's node is
/// known, as on machines with a single node, all devices are one group and nothing is bound.
[[nodiscard]] device_groups near_devices(device::device_set& devices);

}  // namespace hpe::transfer
