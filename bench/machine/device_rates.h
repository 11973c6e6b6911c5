#pragma once

/// Measures the links of all devices with copies that bypass hpe's runtime. The copies use the same devices as hpe,
/// opened a second time.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/predict/machine_profile.h"
#include "runtime/device/device.h"
#include "runtime/memory/uvas.h"

namespace hpe::bench {

class device_rates {
 public:
  /// bytes: the size of a copy. repeats: the number of measurements of each rate, of which the fastest counts.
  /// specification: the devices, in the syntax of HPE_DEVICES.
  device_rates(const std::string& specification, int devices, std::size_t bytes, unsigned repeats);

  enum class way { to_device, to_host, both };
  /// Returns, for 1, 2, 4, ... and all devices, the bytes per second of each device while that many devices copy at the
  /// same time, each from or to its own pinned memory. With way::both, a device's rate counts the bytes of both
  /// directions.
  [[nodiscard]] predict::rate_table pinned(way which);
  /// Returns the seconds that a copy of a few bytes to device 0 takes, including the wait for the copy.
  [[nodiscard]] double latency();
  /// Returns the latency of the first pair of devices that can access each other, the copy rate of each of these pairs,
  /// and, if all devices can access each other, the rates of peers_together(). Returns nullopt if there is no pair.
  [[nodiscard]] std::optional<predict::peer_links> peers();

 private:
  [[nodiscard]] std::byte* memory(int device, int lane) const;
  [[nodiscard]] std::byte* pinned_memory(int device, int lane) const;
  timepoint queue(way which, int device, std::size_t bytes);
  void finish(const std::vector<timepoint>& points);
  [[nodiscard]] double seconds_of(way which, int devices);
  /// Returns, for 1, 2, 4, ... and all devices, the bytes per second of each device while that many devices copy from
  /// their neighbours at the same time. All devices must be able to access each other.
  [[nodiscard]] predict::rate_table peers_together();
  [[nodiscard]] double seconds_between(int from, int to, std::size_t bytes);

  const int count_;
  const std::size_t bytes_;
  const unsigned repeats_;
  memory::uvas space_;
  std::unique_ptr<device::device_set> devices_;
  std::vector<device::stream*> streams_;  // two for each device: one for copies to it, one for copies from it
};

/// Runs prepare() and then body() `repeats` times, and returns the shortest time of body() in seconds. The fastest run
/// counts, because other programs disturb it the least and a profile describes an idle machine.
[[nodiscard]] double fastest_seconds(
    unsigned repeats, const std::function<void()>& body, const std::function<void()>& prepare = [] {});

/// Returns the numbers of devices to measure with: 1, 2, 4, ... and `all`.
[[nodiscard]] std::vector<int> numbers_of_devices(int all);

}  // namespace hpe::bench
