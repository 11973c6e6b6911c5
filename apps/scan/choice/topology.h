#pragma once

#include <string>
#include <vector>

#include "hpe/hpe.hpp"

namespace hpe::scan {

/// The properties of a device that determine a choice.
struct device_traits {
  int number = 0;
  hpeDeviceKind kind = HPE_DEVICE_SOFT;
  std::string name;
  unsigned units = 1;       ///< number of multiprocessors, or of threads
  std::uint64_t peers = 0;  ///< bit d: the device reaches the memory of device d
};

/// Describes devices (empty: all). Throws hpe::error for a device that does not exist, is listed twice, or is lost.
[[nodiscard]] std::vector<device_traits> inspect(const std::vector<int>& devices);

/// Whether every device can reach the memory of every other device.
[[nodiscard]] bool reach_each_other(const std::vector<device_traits>& devices);

/// Divides devices into link domains: sets of devices that all reach each other's memory. Devices keep the order in
/// which they are given. Returns indices into `devices`.
[[nodiscard]] std::vector<std::vector<int>> link_domains(const std::vector<device_traits>& devices);

}  // namespace hpe::scan
