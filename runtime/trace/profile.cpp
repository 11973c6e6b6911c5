#include "runtime/trace/profile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <vector>

#include "runtime/base/foreign_text.h"
#include "runtime/trace/call_stack.h"
#include "runtime/trace/location.h"
#include "runtime/trace/recorder.h"
#include "runtime/trace/status_page.h"

namespace hpe::trace {

namespace {

// The profile is printed at the end of the process, after the program's own output. `teller` is the process that prints
// the profile: a child made by fork prints nothing.
pid_t teller = 0;

[[gnu::destructor]] void tell_at_exit() {
  const profile* const it = profile::active();
  if (it != nullptr && ::getpid() == teller) std::fputs(it->report().c_str(), stderr);
}

constexpr std::array<const char*, way_count> names{"to devices, staged by hpe",   "to devices, by the driver",
                                                   "from devices, staged by hpe", "from devices, by the driver",
                                                   "between allocations of hpe",  "any copy, staged by hpe",
                                                   "any copy, by the driver",     "touches of device memory"};
constexpr std::size_t most_printed_lines = 12;

double seconds(std::chrono::nanoseconds t) { return std::chrono::duration<double>(t).count(); }

}  // namespace

const char* name_of(way how) noexcept { return names[static_cast<unsigned>(how)]; }

std::atomic<profile*> profile::the_active{nullptr};

profile* profile::make() {
  static std::mutex starting;
  const std::lock_guard lock(starting);
  if (active() == nullptr) the_active.store(new profile, std::memory_order_release);
  return active();
}

void profile::start() {
  teller = ::getpid();
  make();
}

void profile::start_untold() { make(); }

void profile::add(way how, std::uint64_t bytes, std::chrono::nanoseconds time, const void* address) noexcept {
  sites_.add(static_cast<unsigned>(how), bytes, time, __builtin_return_address(0), address);
}

void profile::moved(std::uintptr_t region, std::uint64_t region_bytes, std::uint64_t bytes, bool to_device) {
  const lock_guard lock(mutex_);
  traffic& t = regions_[region];
  t.region_bytes = region_bytes;
  (to_device ? t.to_device : t.to_host) += bytes;
  ++(to_device ? t.moves_to_device : t.moves_to_host);
}

void profile::used(std::uintptr_t region, std::uint64_t region_bytes, std::uint64_t begin, std::uint64_t end) {
  const lock_guard lock(mutex_);
  traffic& t = regions_[region];
  t.region_bytes = region_bytes;
  t.used_begin = std::min(t.used_begin, begin);
  t.used_end = std::max(t.used_end, end);
}

void profile::allocated(std::uintptr_t address) {
  call_stack::prepare();
  const call_stack here = call_stack::here();
  const lock_guard lock(mutex_);
  made_at_[address] = here;
}

std::array<site, way_count> profile::sums() const {
  std::array<site, way_count> sums;
  for (const site& s : sites_.all()) {
    sums[s.kind].calls += s.calls;
    sums[s.kind].bytes += s.bytes;
    sums[s.kind].time += s.time;
  }
  return sums;
}

std::vector<profile::place> profile::places() const {
  // Stacks that differ only in outer frames have the same location; they are one place in the report.
  std::map<std::pair<unsigned, std::string>, site> found;
  for (const site& s : sites_.all()) {
    site& p = found[{s.kind, location_of(s.stack)}];
    p.calls += s.calls;
    p.bytes += s.bytes;
    p.time += s.time;
    if (s.lowest != 0) p.lowest = p.lowest != 0 ? std::min(p.lowest, s.lowest) : s.lowest;
    p.highest = std::max(p.highest, s.highest);
  }
  std::vector<place> order(found.begin(), found.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  return order;
}

std::vector<std::pair<std::uintptr_t, profile::traffic>> profile::regions() const {
  std::vector<std::pair<std::uintptr_t, traffic>> order;
  {
    const lock_guard lock(mutex_);
    order.assign(regions_.begin(), regions_.end());
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second.to_device + a.second.to_host > b.second.to_device + b.second.to_host;
  });
  return order;
}

std::string profile::report() const {
  std::string text = "hpe profile\n";
  const auto line = [&text](const std::string& s) { text += s + '\n'; };
  line(fmt::format("  {:<30}{:>10}{:>14}{:>12}{:>9}", "way", "calls", "MiB", "seconds", "GB/s"));
  const auto sum = sums();
  for (unsigned w = 0; w < way_count; ++w) {
    const site& s = sum[w];
    if (s.calls == 0) continue;
    line(fmt::format("  {:<30}{:>10}{:>14.1f}{:>12.6f}{:>9.1f}", names[w], s.calls, double(s.bytes) / (1 << 20),
                     seconds(s.time), s.time.count() > 0 ? double(s.bytes) / double(s.time.count()) : 0.0));
  }

  auto touched = regions();
  std::erase_if(touched, [](const auto& r) { return r.second.to_device + r.second.to_host == 0; });
  if (!touched.empty()) line("  device memory that CPU code used");
  for (std::size_t i = 0; i < std::min(most_printed_lines, touched.size()); ++i) {
    const auto& [address, t] = touched[i];
    line(fmt::format("  {:#18x} of {:>12} bytes: {:>10.1f} MiB to the host, {:>10.1f} MiB to the device", address,
                     t.region_bytes, double(t.to_host) / (1 << 20), double(t.to_device) / (1 << 20)));
  }

  const std::vector<place> order = places();
  if (!order.empty()) line("  where the time went");
  for (std::size_t i = 0; i < std::min(most_printed_lines, order.size()); ++i) {
    const auto& [what, s] = order[i];
    line(fmt::format("  {:>12.6f} s {:>10} calls {:>12.1f} MiB  {}: {}", seconds(s.time), s.calls,
                     double(s.bytes) / (1 << 20), names[what.first], what.second));
  }
  const counters& run = status_page::own().count;
  const auto value = [](const counters::counter& c) { return c.load(std::memory_order_relaxed); };
  const auto mebibytes = [&](const counters::counter& c) { return double(value(c)) / (1 << 20); };
  if (value(run.bytes_spilled) != 0)
    line(fmt::format(
        "  data larger than host memory: {:.1f} MiB were written to the spill file, {:.1f} MiB read from it",
        mebibytes(run.bytes_spilled), mebibytes(run.bytes_unspilled)));
  if (value(run.bytes_evicted) != 0) {
    line(
        fmt::format("  data larger than device memory: {:.1f} MiB were evicted, of which {:.1f} MiB were copied to the "
                    "host; {:.1f} MiB "
                    "were brought in; threads waited {:.6f} s for room",
                    mebibytes(run.bytes_evicted), mebibytes(run.bytes_written_back), mebibytes(run.bytes_brought_in),
                    double(value(run.evicting_ns)) * 1e-9));
    if (value(run.bytes_given_back) != 0 || value(run.turn_wait_ns) != 0)
      line(
          fmt::format("  device memory shared with other processes: {:.1f} MiB were given back to them; threads waited "
                      "{:.6f} s for the turn of this process",
                      mebibytes(run.bytes_given_back), double(value(run.turn_wait_ns)) * 1e-9));
  }
  if (value(run.launches) == 0) return text;
  // `hpe predict --from-profile` reads this line.
  std::chrono::nanoseconds waited{0};
  for (const site& s : sum) waited += s.time;
  const unsigned devices = status_page::own().devices.load(std::memory_order_acquire);
  line(fmt::format(
      "  the run: {:.6f} s, of which threads waited {:.6f} s for data; {} launches on {} device{}; {} bytes "
      "to devices, {} bytes to the host",
      seconds(std::chrono::steady_clock::now() - began_), seconds(waited), value(run.launches), devices,
      devices == 1 ? "" : "s", value(run.bytes_to_device), value(run.bytes_to_host)));
  return text;
}

std::string profile::json() const {
  std::string found;
  for (const auto& [what, s] : places())
    found += fmt::format(R"({}{{"way":{},"where":{},"calls":{},"bytes":{},"seconds":{:.9f},"lowest":{},"highest":{}}})",
                         found.empty() ? "" : ",", json_text(names[what.first]), json_text(what.second), s.calls,
                         s.bytes, seconds(s.time), s.lowest, s.highest);
  std::map<std::uintptr_t, call_stack> made_at;
  {
    const lock_guard lock(mutex_);
    made_at = made_at_;
  }
  // Small allocations share a region. The origin of the region is the call site of the first of these allocations.
  const auto origin = [&](std::uintptr_t region, std::uint64_t bytes) {
    const auto first = made_at.lower_bound(region);
    if (first == made_at.end() || first->first >= region + bytes) return std::string();
    return location_of(std::span(first->second.frames).first(static_cast<std::size_t>(first->second.count)));
  };
  std::string used;
  for (const auto& [address, t] : regions())
    used += fmt::format(R"({}{{"address":{},"bytes":{},"made_at":{},"to_host":{},"to_device":{},"moves_to_host":{},)"
                        R"("moves_to_device":{},"used_begin":{},"used_end":{}}})",
                        used.empty() ? "" : ",", address, t.region_bytes, json_text(origin(address, t.region_bytes)),
                        t.to_host, t.to_device, t.moves_to_host, t.moves_to_device, t.used_end == 0 ? 0 : t.used_begin,
                        t.used_end);
  return fmt::format(R"({{"places":[{}],"allocations":[{}]}})", found, used);
}

}  // namespace hpe::trace
