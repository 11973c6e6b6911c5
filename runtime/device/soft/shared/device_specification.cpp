#include "runtime/device/soft/shared/device_specification.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/options.h"
#include "runtime/device/device.h"

namespace hpe::device::soft {

namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

constexpr std::string_view prefix = "soft:";

}  // namespace

topology parse_topology(const std::string& text) {
  if (text.empty()) return {};
  const auto refuse = [&](const std::string& why) {
    HPE_THROW(HPE_ERROR_INITIALIZATION,
              "HPE_DEVICES=\"{}\": {}; use soft:N for N devices on one switch, or soft:SxN for S switches of N "
              "devices, at most {} devices in all",
              text, why, max_devices);
  };
  if (!text.starts_with(prefix)) refuse("no family of devices has this name");

  const std::string_view counts = std::string_view(text).substr(prefix.size());
  const auto cross = counts.find('x');
  const auto switches = cross == std::string_view::npos ? 1 : parse_number(counts.substr(0, cross));
  const auto devices = parse_number(cross == std::string_view::npos ? counts : counts.substr(cross + 1));
  if (!switches || !devices) refuse(fmt::format("\"{}\" is not a number of devices", counts));
  if (*switches == 0 || *devices == 0) refuse("there must be at least one device");
  if (*switches > max_devices || *devices > max_devices || *switches * *devices > max_devices)
    refuse("too many devices");
  return {static_cast<unsigned>(*switches), static_cast<unsigned>(*devices)};
}

link_limit parse_link(const std::string& variable, const std::string& text) {
  if (text.empty()) return {};
  const auto refuse = [&](const std::string& why) {
    HPE_THROW(HPE_ERROR_INITIALIZATION,
              "{}=\"{}\": {}; expected bandwidth:latency, as in 12G:5 for 12 GiB per second and 5 microseconds",
              variable, text, why);
  };
  const auto colon = text.find(':');
  link_limit result;
  try {
    result.bytes_per_second = parse_size(text.substr(0, colon));
  } catch (const error& e) {
    refuse(e.what());
  }
  if (result.bytes_per_second == 0) refuse("the bandwidth of a link must be more than 0");
  if (colon != std::string::npos) {
    const auto latency = parse_number(std::string_view(text).substr(colon + 1));
    constexpr std::uint64_t longest_us = 10'000'000;
    if (!latency || *latency > longest_us) refuse("the latency is not a number of microseconds up to ten seconds");
    result.latency_ns = *latency * 1000;
  }
  return result;
}

std::vector<int> parse_nodes(const std::string& text, unsigned devices) {
  if (text.empty()) return std::vector<int>(devices, unknown_node);
  constexpr std::uint64_t largest = 1023;  // the limit of Linux
  std::vector<int> named;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto node = parse_number(std::string_view(text).substr(begin, end - begin));
    HPE_REQUIRE(node && *node <= largest, HPE_ERROR_INITIALIZATION,
                "HPE_SOFT_NODES=\"{}\" is not a list of NUMA nodes; expected numbers from 0 to {} with commas between "
                "them, as in 0,1",
                text, largest);
    named.push_back(static_cast<int>(*node));
    begin = end + 1;
  }
  std::vector<int> result;
  for (unsigned d = 0; d < devices; ++d) result.push_back(named[d % named.size()]);
  return result;
}

}  // namespace hpe::device::soft
