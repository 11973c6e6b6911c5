#pragma once

/// Parsers for options of soft devices: the number of devices and switches, the speed of links, and the NUMA nodes.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hpe::device::soft {

inline constexpr unsigned max_devices = 16;

/// The simulated switches and the devices on them. Devices of one switch have consecutive numbers, can access each
/// other's memory and share one link to the host.
struct topology {
  unsigned switches = 1;
  unsigned devices_per_switch = 2;

  [[nodiscard]] unsigned devices() const noexcept { return switches * devices_per_switch; }
  [[nodiscard]] unsigned switch_of(unsigned device) const noexcept { return device / devices_per_switch; }
  [[nodiscard]] bool peers(unsigned a, unsigned b) const noexcept { return switch_of(a) == switch_of(b); }
};

/// Parses "soft:N" (N devices on one switch), "soft:SxN" (S switches with N devices each) or "" (the same as soft:2).
/// Throws HPE_ERROR_INITIALIZATION for any other text; the message states the error and the possible forms.
[[nodiscard]] topology parse_topology(const std::string& text);

/// The limits of one direction of a link. If bytes_per_second is 0, the link has no limit and takes no time.
struct link_limit {
  std::uint64_t bytes_per_second = 0;
  std::uint64_t latency_ns = 0;
};

/// Parses "bandwidth:latency", for example "12G:5", or "bandwidth", or "" for no limit. The bandwidth is in bytes per
/// second, with k, M, G and T as powers of 1024; the latency is in microseconds. Throws HPE_ERROR_INITIALIZATION for
/// any other text. `variable`: the name of the option, for the error message.
[[nodiscard]] link_limit parse_link(const std::string& variable, const std::string& text);

/// Parses HPE_SOFT_NODES, for example "0,1", and returns the NUMA node of each of `devices` devices. If there are fewer
/// nodes than devices, the nodes repeat. If the text is empty, every node is unknown_node. Throws
/// HPE_ERROR_INITIALIZATION if the text is no list of numbers up to 1023.
[[nodiscard]] std::vector<int> parse_nodes(const std::string& text, unsigned devices);

}  // namespace hpe::device::soft
