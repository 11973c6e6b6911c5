#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/device/device.h"

namespace hpe::transfer {

/// Which devices are served by the same threads and buffers, and how these get near their devices. Devices of one NUMA
/// node are one group. As it is here, all devices are one group, and nothing is put anywhere.
struct device_groups {
  std::vector<unsigned> group_of{};  ///< by device; groups are numbered from 0 without gaps. Empty: all are group 0

  /// Called first in each thread that serves a group.
  std::function<void(unsigned group)> settle_thread = [](unsigned) {};
  /// Called for memory that serves a group before its pages exist.
  std::function<void(unsigned group, void* memory, std::size_t bytes)> settle_memory = [](unsigned, void*,
                                                                                          std::size_t) {};

  /// Of any number: what is no device is served by group 0.
  [[nodiscard]] unsigned group(unsigned device) const noexcept {
    return device < group_of.size() ? group_of[device] : 0;
  }
  [[nodiscard]] unsigned groups() const noexcept {
    unsigned last = 0;
    for (const unsigned g : group_of) last = g > last ? g : last;
    return last + 1;
  }
};

/// Puts what serves a device on the device's NUMA node. Where no device's node is known, which is so on machines that
/// have only one, all devices are one group and nothing is bound.
[[nodiscard]] device_groups near_devices(device::device_set& devices);

}  // namespace hpe::transfer
