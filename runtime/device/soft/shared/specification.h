#pragma once

/// Parsers for the user's options for soft devices: the number of devices and of switches, and the speed of links.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hpe::device::soft {

inline constexpr unsigned max_devices = 16;

/// Devices are numbered switch by switch. Devices of one switch can access each other's memory and share one link to
/// the host.
struct topology {
  unsigned switches = 1;
  unsigned devices_per_switch = 2;

  [[nodiscard]] unsigned devices() const noexcept { return switches * devices_per_switch; }
  [[nodiscard]] unsigned switch_of(unsigned device) const noexcept { return device / devices_per_switch; }
  [[nodiscard]] bool peers(unsigned a, unsigned b) const noexcept { return switch_of(a) == switch_of(b); }
};

/// Parses "soft:N" (one switch), "soft:SxN" (S switches of N devices) or "" (soft:2). Throws HPE_ERROR_INITIALIZATION;
/// the message states the error and the possible forms.
[[nodiscard]] topology parse_topology(const std::string& text);

/// The limits of one direction of a link. If bytes_per_second is 0, the link has no limit and takes no time.
struct link_limit {
  std::uint64_t bytes_per_second = 0;
  std::uint64_t latency_ns = 0;
};

/// Parses "bandwidth:latency" or "bandwidth", for example "12G:5", or "" for no limit. The bandwidth is in bytes per
/// second, with k, M, G and T as powers of 1024; the latency is in microseconds. `variable` names the option in the
/// message of HPE_ERROR_INITIALIZATION.
[[nodiscard]] link_limit parse_link(const std::string& variable, const std::string& text);

/// Parses HPE_SOFT_NODES, "0,1" or "", into the node of each device, which is unknown_node if the text is empty. Throws
/// HPE_ERROR_INITIALIZATION.
[[nodiscard]] std::vector<int> parse_nodes(const std::string& text, unsigned devices);

}  // namespace hpe::device::soft
