#pragma once

/// Parsers of the user's options for soft devices: their number, their switches, and the speed of links.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hpe::device::soft {

inline constexpr unsigned max_devices = 16;

/// Devices are numbered switch by switch. Devices of one switch reach each other's memory and share one link to the
/// host.
struct topology {
  unsigned switches = 1;
  unsigned devices_per_switch = 2;

  [[nodiscard]] unsigned devices() const noexcept { return switches * devices_per_switch; }
  [[nodiscard]] unsigned switch_of(unsigned device) const noexcept { return device / devices_per_switch; }
  [[nodiscard]] bool peers(unsigned a, unsigned b) const noexcept { return switch_of(a) == switch_of(b); }
};

/// Parses "soft:N" (one switch), "soft:SxN" (S switches of N devices) or "" (soft:2). Throws HPE_ERROR_INITIALIZATION
/// with the error and the possible forms.
[[nodiscard]] topology parse_topology(const std::string& text);

/// The limits of one direction of a link. bytes_per_second 0 means no limit, and that no time is kept.
struct link_limit {
  std::uint64_t bytes_per_second = 0;
  std::uint64_t latency_ns = 0;
};

/// Parses "bandwidth:latency" or "bandwidth", as 12G:5 (bytes per second with k, M, G, T of 1024; microseconds), or ""
/// for no limit. `variable` names the option in the message of HPE_ERROR_INITIALIZATION.
[[nodiscard]] link_limit parse_link(const std::string& variable, const std::string& text);

/// Whether an option with two values has the second one. Throws HPE_ERROR_INITIALIZATION for any other value.
[[nodiscard]] bool parse_choice(const std::string& variable, const std::string& value, const std::string& first,
                                const std::string& second);

/// Parses HPE_SOFT_NODES, "0,1" or "", into the node of each device; unknown_node if it is empty. Throws
/// HPE_ERROR_INITIALIZATION.
[[nodiscard]] std::vector<int> parse_nodes(const std::string& text, unsigned devices);

}  // namespace hpe::device::soft
