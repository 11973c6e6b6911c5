#include "apps/hpe/report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace hpe::cli {

namespace {

constexpr std::string_view touches = "touches of device memory";

// Most rules apply only to records that took at least this fraction of the process's time. Rules about copies and
// touches also need a least number of copies or touches.
constexpr double least_part_of_time = 0.02;
constexpr std::uint64_t many = 100;
constexpr std::uint64_t many_touches = 32;
constexpr std::uint64_t little_memory = 256 << 10;  // bytes; the time of smaller touches and copies is mostly latency
constexpr std::uint64_t tiny = 4 << 10;
constexpr std::uint64_t large_allocation = 16 << 20;

bool is_touch(const recorded_place& p) { return p.way == touches; }
bool matters(double seconds, const recorded_process& in) { return seconds >= least_part_of_time * in.seconds; }

std::string size(double bytes) {
  constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

std::string name_of(const recorded_allocation& a) {
  return a.made_at.empty() ? fmt::format("the allocation of {} at {:#x}", size(double(a.bytes)), a.address)
                           : fmt::format("the allocation of {} made at {}", size(double(a.bytes)), a.made_at);
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

double seconds_of_touches(const recorded_allocation& a, const recorded_process& in) {
  double sum = 0;
  for (const recorded_place& p : in.places)
    if (is_touch(p) && allocation_of(p, in) == &a) sum += p.seconds;
  return sum;
}

using results = std::vector<advice>;

// Touches that copy at most `tiny` bytes to the host are called element-wise; larger touches copy whole blocks.
void touches_of_small_pieces(const recorded_process& in, results& to) {
  for (const recorded_place& p : in.places) {
    if (!is_touch(p) || p.calls < many_touches || !matters(p.seconds, in)) continue;
    const std::uint64_t bytes = bytes_of_touches(p, in);
    if (bytes / p.calls > little_memory) continue;
    const recorded_allocation* const a = allocation_of(p, in);
    const bool elements = bytes / p.calls <= tiny;
    to.push_back(
        {elements ? "element-wise touches" : "touches block by block", p.where,
         fmt::format("{} waited {:.3f} s for {} touches of {}, which brought {} in {} of about {}. Copy the data once "
                     "(hpeMemcpy, cudaMemcpy) before CPU code uses it, or prefetch it (hpePrefetch).",
                     p.where, p.seconds, p.calls, a != nullptr ? name_of(*a) : "device memory", size(double(bytes)),
                     elements ? "pieces" : "blocks", size(double(bytes) / double(p.calls))),
         p.seconds});
  }
}

void ping_pong(const recorded_process& in, results& to) {
  for (const recorded_allocation& a : in.allocations) {
    constexpr std::uint64_t rounds = 2;
    if (a.bytes == 0 || std::min(a.to_host, a.to_device) < rounds * a.bytes) continue;
    const double times = double(std::min(a.to_host, a.to_device)) / double(a.bytes);
    to.push_back({"ping-pong", a.made_at,
                  fmt::format("{} moved to the host and back {:.0f} times ({} and {}). CPU code and kernels use this "
                              "memory in turn: let a kernel do the work of the CPU code, or keep the data that the CPU "
                              "code uses in a separate allocation.",
                              capital(name_of(a)), times, size(double(a.to_host)), size(double(a.to_device))),
                  seconds_of_touches(a, in)});
  }
}

void small_copies(const recorded_process& in, results& to) {
  for (const recorded_place& p : in.places) {
    if (is_touch(p) || p.calls < many || !matters(p.seconds, in)) continue;
    const std::uint64_t each = p.bytes / p.calls;
    const bool down = p.way.starts_with("from devices");
    if (down && each <= tiny) {
      to.push_back({"copies to read in place", p.where,
                    fmt::format("{} copies {} from a device {} times and waits {:.3f} s. CPU code may read device "
                                "memory in place under hpe: use the device pointer, or copy all of the data at once.",
                                p.where, size(double(each)), p.calls, p.seconds),
                    p.seconds});
    } else if (each <= little_memory) {
      to.push_back({"small copies", p.where,
                    fmt::format("{} makes {} copies of {} ({}) in {:.3f} s. Their time is mostly latency: combine "
                                "neighbouring copies into one.",
                                p.where, p.calls, size(double(each)), p.way, p.seconds),
                    p.seconds});
    }
  }
}

void many_messages(const recorded_process& in, results& to) {
  for (const recorded_calls& c : in.mpi) {
    constexpr std::uint64_t very_many = 1000;
    constexpr double short_call = 100e-6;
    if (c.calls < very_many || !matters(c.seconds, in) || c.seconds / double(c.calls) > short_call) continue;
    to.push_back(
        {"many small messages", c.function,
         fmt::format("{} calls of {} on device memory took {:.3f} s, {:.1f} us each. Their time is mostly latency: "
                     "combine neighbouring messages, with a derived datatype if they are not contiguous.",
                     c.calls, c.function, c.seconds, c.seconds / double(c.calls) * 1e6),
         c.seconds});
  }
}

void larger_than_used(const recorded_process& in, results& to) {
  for (const recorded_allocation& a : in.allocations) {
    const std::uint64_t used = a.used_end - a.used_begin;
    if (a.bytes < large_allocation || a.used_end == 0 || used > a.bytes / 2) continue;
    to.push_back({"allocation larger than needed", a.made_at,
                  fmt::format("Of {}, the program used {} only, from offset {}. A smaller allocation would leave more "
                              "device memory free.",
                              name_of(a), size(double(used)), size(double(a.used_begin))),
                  0});
  }
}

void read_ahead_finds_nothing(const recorded_process& in, results& to) {
  constexpr std::uint64_t enough = 500;
  if (in.faults_read < enough || in.blocks_prefetched >= in.faults_read) return;
  double seconds = 0;
  for (const recorded_place& p : in.places)
    if (is_touch(p)) seconds += p.seconds;
  if (!matters(seconds, in)) return;
  to.push_back({"read-ahead not effective", "",
                fmt::format("{} reads of CPU code waited for data, and {} blocks were fetched ahead: the reads jump "
                            "through memory. Read in the order of the addresses, copy the needed data with one call, "
                            "or prefetch it (hpePrefetch).",
                            in.faults_read, in.blocks_prefetched),
                seconds});
}

void high_fault_rate(const recorded_process& in, results& to) {
  double seconds = 0;
  std::uint64_t count = 0;
  for (const recorded_place& p : in.places) {
    if (!is_touch(p)) continue;
    seconds += p.seconds;
    count += p.calls;
  }
  constexpr double high_rate = 2000;  // 1/s
  const double rate = in.seconds > 0 ? double(count) / in.seconds : 0;
  if (rate < high_rate || !matters(seconds, in)) return;
  to.push_back(
      {"high fault rate", "",
       fmt::format("CPU code waited {:.0f} times a second for device memory, {:.3f} s in all. Each of these waits "
                   "costs at least some microseconds. Access more memory at once, or access it less often.",
                   rate, seconds),
       seconds});
}

void mappings_ran_out(const recorded_process& in, results& to) {
  if (in.degraded == 0) return;
  to.push_back({"mappings ran out", "",
                fmt::format("{} allocations move as a whole because this process has reached the limit of mappings. "
                            "Raise vm.max_map_count, or use larger blocks (HPE_BLOCK_SIZE).",
                            in.degraded),
                0});
}

}  // namespace

const recorded_allocation* allocation_of(const recorded_place& place, const recorded_process& process) {
  const auto found = std::find_if(process.allocations.begin(), process.allocations.end(), [&](const auto& a) {
    return place.lowest >= a.address && place.lowest < a.address + a.bytes;
  });
  return place.lowest != 0 && found != process.allocations.end() ? &*found : nullptr;
}

std::uint64_t bytes_of_touches(const recorded_place& place, const recorded_process& process) {
  const recorded_allocation* const a = allocation_of(place, process);
  if (a == nullptr || !is_touch(place)) return 0;
  std::uint64_t all = 0;
  for (const recorded_place& p : process.places)
    if (is_touch(p) && allocation_of(p, process) == a) all += p.calls;
  return static_cast<std::uint64_t>(double(a->to_host) * double(place.calls) / double(std::max<std::uint64_t>(all, 1)));
}

std::vector<advice> advise(const recorded_process& process) {
  results all;
  for (const auto rule : {touches_of_small_pieces, ping_pong, small_copies, many_messages, larger_than_used,
                          read_ahead_finds_nothing, high_fault_rate, mappings_ran_out})
    rule(process, all);
  std::stable_sort(all.begin(), all.end(), [](const advice& a, const advice& b) { return a.seconds > b.seconds; });
  return all;
}

}  // namespace hpe::cli
