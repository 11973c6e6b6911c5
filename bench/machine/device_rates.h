#pragma once

/// The links of all devices, measured with copies that bypass hpe's runtime, on a second set of the same devices.

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
  /// bytes: the size of a copy. repeats: measurements of each rate, of which the fastest counts. specification: the
  /// devices, as in HPE_DEVICES.
  device_rates(const std::string& specification, int devices, std::size_t bytes, unsigned repeats);

  enum class way { to_device, to_host, both };
  /// For 1, 2, 4, ... and all devices: bytes per second of each while that many copy concurrently, from or to pinned
  /// memory of its own.
  [[nodiscard]] predict::rate_table pinned(way which);
  /// Seconds of a synchronous copy of a few bytes to a device.
  [[nodiscard]] double latency();
  /// All pairs of devices that reach each other; nothing if there is none.
  [[nodiscard]] std::optional<predict::peer_links> peers();

 private:
  [[nodiscard]] std::byte* memory(int device, int lane) const;
  [[nodiscard]] std::byte* pinned_memory(int device, int lane) const;
  timepoint queue(way which, int device, std::size_t bytes);
  void finish(const std::vector<timepoint>& points);
  [[nodiscard]] double seconds_of(way which, int devices);
  /// For devices that all reach each other: the rate of each while that many copy from their neighbours concurrently.
  [[nodiscard]] predict::rate_table peers_together();
  [[nodiscard]] double seconds_between(int from, int to, std::size_t bytes);

  const int count_;
  const std::size_t bytes_;
  const unsigned repeats_;
  memory::uvas space_;
  std::unique_ptr<device::device_set> devices_;
  std::vector<device::stream*> streams_;  // for each device one to it, and one back
};

/// The seconds of the fastest of `repeats` runs of the body, each after prepare. The fastest run is the one least
/// disturbed by other programs, and a profile describes an idle machine.
[[nodiscard]] double fastest_seconds(
    unsigned repeats, const std::function<void()>& body, const std::function<void()>& prepare = [] {});

/// 1, 2, 4, ... and `all`.
[[nodiscard]] std::vector<int> numbers_of_devices(int all);

}  // namespace hpe::bench
