#include "runtime/trace/profile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/trace/location.h"

namespace hpe::trace {

namespace {

// At the end of the process, when the program's own output is written.
// A child made by fork is another process, and tells nothing.
pid_t teller = 0;

[[gnu::destructor]] void tell_at_exit() {
  const profile* const it = profile::active();
  if (it != nullptr && ::getpid() == teller) std::fputs(it->report().c_str(), stderr);
}

constexpr std::array<const char*, way_count> names{"to devices, staged by hpe",   "to devices, by the driver",
                                                   "from devices, staged by hpe", "from devices, by the driver",
                                                   "between allocations of hpe",  "any copy, staged by hpe",
                                                   "any copy, by the driver",     "touches of device memory"};
constexpr std::size_t most_lines = 12;

double seconds(std::chrono::nanoseconds t) { return std::chrono::duration<double>(t).count(); }

}  // namespace

const char* name_of(way how) noexcept { return names[static_cast<unsigned>(how)]; }

std::atomic<profile*> profile::the_active{nullptr};

void profile::start(const std::string& wanted) {
  HPE_REQUIRE(wanted == "0" || wanted == "1", HPE_ERROR_INITIALIZATION, "HPE_PROFILE=\"{}\" is neither 0 nor 1",
              wanted);
  if (wanted == "0" || active() != nullptr) return;
  auto made = std::make_unique<profile>();
  teller = ::getpid();
  profile* none = nullptr;
  if (the_active.compare_exchange_strong(none, made.get())) static_cast<void>(made.release());
}

void profile::add(way how, std::uint64_t bytes, std::chrono::nanoseconds time) noexcept {
  sites_.add(static_cast<unsigned>(how), bytes, time, __builtin_return_address(0));
}

void profile::moved(std::uintptr_t region, std::uint64_t region_bytes, std::uint64_t bytes, bool to_device) {
  const lock_guard lock(mutex_);
  traffic& t = regions_[region];
  t.region_bytes = region_bytes;
  (to_device ? t.to_device : t.to_host) += bytes;
}

std::string profile::report() const {
  const std::vector<site> sites = sites_.all();
  std::string text = "hpe profile\n";
  const auto line = [&text](const std::string& s) { text += s + '\n'; };

  std::array<site, way_count> sums;
  for (const site& s : sites) {
    sums[s.kind].calls += s.calls;
    sums[s.kind].bytes += s.bytes;
    sums[s.kind].time += s.time;
  }
  line(fmt::format("  {:<30}{:>10}{:>14}{:>12}{:>9}", "way", "calls", "MiB", "seconds", "GB/s"));
  for (unsigned w = 0; w < way_count; ++w) {
    const site& s = sums[w];
    if (s.calls == 0) continue;
    line(fmt::format("  {:<30}{:>10}{:>14.1f}{:>12.6f}{:>9.1f}", names[w], s.calls, double(s.bytes) / (1 << 20),
                     seconds(s.time), s.time.count() > 0 ? double(s.bytes) / double(s.time.count()) : 0.0));
  }

  std::vector<std::pair<std::uintptr_t, traffic>> regions;
  {
    const lock_guard lock(mutex_);
    regions.assign(regions_.begin(), regions_.end());
  }
  std::sort(regions.begin(), regions.end(), [](const auto& a, const auto& b) {
    return a.second.to_device + a.second.to_host > b.second.to_device + b.second.to_host;
  });
  if (!regions.empty()) line("  device memory that CPU code used");
  for (std::size_t i = 0; i < std::min(most_lines, regions.size()); ++i) {
    const auto& [address, t] = regions[i];
    line(fmt::format("  {:#18x} of {:>12} bytes: {:>10.1f} MiB to the host, {:>10.1f} MiB to the device", address,
                     t.region_bytes, double(t.to_host) / (1 << 20), double(t.to_device) / (1 << 20)));
  }

  // Stacks that differ further out are one place to the reader.
  std::map<std::pair<unsigned, std::string>, site> places;
  for (const site& s : sites) {
    site& p = places[{s.kind, location_of(s.stack)}];
    p.calls += s.calls;
    p.bytes += s.bytes;
    p.time += s.time;
  }
  std::vector<std::pair<std::pair<unsigned, std::string>, site>> order(places.begin(), places.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  if (!order.empty()) line("  where the time went");
  for (std::size_t i = 0; i < std::min(most_lines, order.size()); ++i) {
    const auto& [what, s] = order[i];
    line(fmt::format("  {:>12.6f} s {:>10} calls {:>12.1f} MiB  {}: {}", seconds(s.time), s.calls,
                     double(s.bytes) / (1 << 20), names[what.first], what.second));
  }
  return text;
}

}  // namespace hpe::trace
