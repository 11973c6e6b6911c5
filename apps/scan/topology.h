#pragma once

#include <string>
#include <vector>

#include "hpe/hpe.hpp"

namespace hpe::scan {

/// What a choice depends on about one device.
struct device_traits {
  int number = 0;
  hpeDeviceKind kind = HPE_DEVICE_SOFT;
  std::string name;
  unsigned units = 1;       ///< multiprocessors, or threads
  std::uint64_t peers = 0;  ///< bit d: it reaches the memory of device d
};

/// Describes devices (empty: all). Throws hpe::error for a number that is none, a device listed twice, or a lost one.
[[nodiscard]] std::vector<device_traits> inspect(const std::vector<int>& devices);

/// Whether each reaches the memory of each.
[[nodiscard]] bool reach_each_other(const std::vector<device_traits>& devices);

/// Divides devices into link domains, the largest sets in which each reaches each, in the order in which they were
/// given. Gives indices into `devices`.
[[nodiscard]] std::vector<std::vector<int>> link_domains(const std::vector<device_traits>& devices);

}  // namespace hpe::scan
