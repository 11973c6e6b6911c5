#include "runtime/trace/profile.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/trace/source_lines.h"

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

using line_function = bool(const void*, char*, std::size_t);

std::string folder_of_this_library() {
  Dl_info about{};
  if (::dladdr(reinterpret_cast<const void*>(&seconds), &about) == 0 || about.dli_fname == nullptr) return "";
  const std::string_view file = about.dli_fname;
  return std::string(file.substr(0, file.rfind('/') + 1));
}

line_function* find_line_function() {
  const std::string name = "libhpe-source-lines.so";
  void* library = ::dlopen((folder_of_this_library() + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? reinterpret_cast<line_function*>(::dlsym(library, "hpe_source_line")) : nullptr;
}

// A return address belongs to the instruction before it.
const void* call_before(const void* return_address) { return static_cast<const std::byte*>(return_address) - 1; }

// Libraries between the program and this one say nothing about where the program is.
bool is_between(const std::string& file) {
  static constexpr std::array<const char*, 3> between{"/libhpe", "/libcuda", "/libc.so"};
  return std::any_of(between.begin(), between.end(),
                     [&](const char* name) { return file.find(name) != std::string::npos; });
}

// The innermost place with a source line, or else the innermost one of the program.
std::string place_of(const site& s, line_function* line_of) {
  std::string fallback = "somewhere";
  bool named = false;
  for (void* const frame : s.stack) {
    const void* const at = call_before(frame);
    Dl_info about{};
    const bool known = ::dladdr(at, &about) != 0 && about.dli_fname != nullptr;
    if (known && is_between(about.dli_fname)) continue;
    char line[512];
    if (line_of != nullptr && line_of(at, line, sizeof line)) return line;
    if (named || !known) continue;
    named = true;
    fallback = about.dli_sname != nullptr
                   ? fmt::format("{} in {}", about.dli_sname, about.dli_fname)
                   : fmt::format("{}+{:#x}", about.dli_fname,
                                 static_cast<const std::byte*>(at) - static_cast<const std::byte*>(about.dli_fbase));
  }
  return fallback;
}

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
  const std::lock_guard lock(mutex_);
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
    const std::lock_guard lock(mutex_);
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

  line_function* const line_of = find_line_function();
  // Stacks that differ further out are one place to the reader.
  std::map<std::pair<unsigned, std::string>, site> places;
  for (const site& s : sites) {
    site& p = places[{s.kind, place_of(s, line_of)}];
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
