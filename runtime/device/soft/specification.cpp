#include "runtime/device/soft/specification.h"

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/options.h"

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
    HPE_THROW(
        HPE_ERROR_INITIALIZATION,
        "HPE_DEVICES=\"{}\": {}; possible are soft:N for N devices on one switch and soft:SxN for S switches of N "
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
              "{}=\"{}\": {}; possible is bandwidth:latency, as 12G:5 for 12 GiB per second and 5 microseconds",
              variable, text, why);
  };
  const auto colon = text.find(':');
  link_limit result;
  try {
    result.bytes_per_second = parse_size(text.substr(0, colon));
  } catch (const error& e) {
    refuse(e.what());
  }
  if (result.bytes_per_second == 0) refuse("a link must carry something");
  if (colon != std::string::npos) {
    const auto latency = parse_number(std::string_view(text).substr(colon + 1));
    constexpr std::uint64_t longest_us = 10'000'000;
    if (!latency || *latency > longest_us) refuse("the latency is not a number of microseconds up to ten seconds");
    result.latency_ns = *latency * 1000;
  }
  return result;
}

}  // namespace hpe::device::soft
