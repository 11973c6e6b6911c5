// The throughput of transfers by size, in one direction and in both directions at once, and the time until the call
// returns, as in Figures 5.6 and 5.7 of J. Cabezas, "On the Programmability of Multi-GPU Computing Systems" (2015). hpe
// is compared with hand-written copies.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/copies/bare_copies.h"
#include "bench/copies/driver_copy.h"
#include "bench/copies/partner.h"
#include "hpe/hpe.hpp"

namespace {

using hpe::bench::chart;
using hpe::bench::direction;
using hpe::bench::line;
using hpe::bench::partner;

constexpr std::size_t kibi = 1024, mebi = kibi * kibi, gibi = mebi * kibi;
constexpr std::size_t smallest = 4 * kibi;
constexpr int host = direction::host;

/// A way to copy bytes. begin() returns when the calling thread may continue, and finish() when the copy is done.
struct scheme {
  std::string name;
  std::function<void(direction, int lane, std::size_t bytes)> begin;
  std::function<void()> finish = [] {};
};

struct sample {
  double seconds;  ///< until the copy is done
  double held;     ///< until the calling thread may continue
};

sample once(const scheme& s, direction way, bool both_ways, std::size_t bytes, partner& second) {
  double held = 0;
  const std::function<void()> back = [&] { s.begin({way.to, way.from}, 1, bytes); };
  const double begin = hpe::bench::now();
  if (both_ways) second.go(&back);
  s.begin(way, 0, bytes);
  held = hpe::bench::now() - begin;
  if (both_ways) second.wait();
  s.finish();
  return {hpe::bench::now() - begin, held};
}

sample median(const scheme& s, direction way, bool both_ways, std::size_t bytes, unsigned repeats, partner& second) {
  // Small transfers are repeated more often, because their times vary more.
  const std::size_t times = repeats * std::clamp<std::size_t>(mebi / bytes, 1, 16);
  std::vector<double> seconds, held;
  for (std::size_t i = 0; i <= times; ++i) {
    const sample it = once(s, way, both_ways, bytes, second);
    if (i == 0) continue;  // the first copy warms up
    seconds.push_back(it.seconds);
    held.push_back(it.held);
  }
  const auto middle = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
  };
  return {middle(seconds), middle(held)};
}

/// The charts of one direction: its throughput alone, the throughput of both directions at once, and the time until the
/// call returns.
struct figure {
  std::string name;
  std::vector<chart> charts;
};

figure make_figure(const std::string& name) {
  const hpe::bench::axis size{"bytes of a transfer", hpe::bench::scale::sizes};
  const hpe::bench::axis rate{"GB/s", hpe::bench::scale::linear};
  const hpe::bench::axis held{"microseconds", hpe::bench::scale::decades};
  return {name,
          {{name + ", one way", size, rate, {}},
           {name + ", both ways at once", size, rate, {}},
           {name + ", calling thread held", size, held, {}}}};
}

void add(figure& f, const std::string& name, std::size_t bytes, const sample& one, const sample& both) {
  const double values[] = {static_cast<double>(bytes) / one.seconds * 1e-9,
                           2 * static_cast<double>(bytes) / both.seconds * 1e-9, one.held * 1e6};
  for (std::size_t i = 0; i < f.charts.size(); ++i) {
    std::vector<line>& lines = f.charts[i].lines;
    if (lines.empty() || lines.back().name != name) lines.push_back({name, {}});
    lines.back().points.emplace_back(static_cast<double>(bytes), values[i]);
  }
}

void measure(figure& f, const scheme& s, direction way, std::size_t largest, unsigned repeats, partner& second) {
  for (std::size_t bytes = smallest; bytes <= largest; bytes *= 4)
    add(f, s.name, bytes, median(s, way, false, bytes, repeats, second), median(s, way, true, bytes, repeats, second));
}

/// Arrays of hpe, and ordinary memory, for each of two lanes (bare_copies.h).
class arrays {
 public:
  explicit arrays(std::size_t largest) {
    for (int d = 0; d < std::min(hpe::device_count(), 2); ++d)
      for (int lane = 0; lane < 2; ++lane) {
        on_device_.emplace_back(largest, hpe::on_device(d));
        hpe::fill(on_device_.back().data(), 1, largest);
      }
    for (std::vector<std::byte>& v : pageable_) v.assign(largest, std::byte{1});
  }
  [[nodiscard]] std::byte* at(int where, int lane) {
    if (where == host) return pageable(lane);
    return on_device_[2 * static_cast<std::size_t>(where) + static_cast<std::size_t>(lane)].data();
  }
  [[nodiscard]] std::byte* pageable(int lane) { return pageable_[static_cast<std::size_t>(lane)].data(); }

 private:
  std::vector<hpe::array<std::byte>> on_device_;
  std::vector<std::byte> pageable_[2];
};

scheme through_hpe(arrays& data) {
  return {"hpe",
          [&](direction way, int lane, std::size_t bytes) {
            hpe::copy(data.at(way.to, lane), data.at(way.from, lane), bytes);
          },
          [] { hpe::synchronize(); }};
}

void print(const figure& f) {
  for (const chart& c : f.charts) {
    fmt::print("\n{} ({})\n  {:>10}", c.title, c.y.label, "size");
    for (const line& l : c.lines) fmt::print("  {:>24}", l.name);
    for (std::size_t i = 0; !c.lines.empty() && i < c.lines.front().points.size(); ++i) {
      const auto bytes = static_cast<std::size_t>(c.lines.front().points[i].first);
      fmt::print("\n  {:>6} {}", bytes >= mebi ? bytes / mebi : bytes / kibi, bytes >= mebi ? "MiB" : "KiB");
      for (const line& l : c.lines) fmt::print("  {:>24.3f}", i < l.points.size() ? l.points[i].second : NAN);
    }
    fmt::print("\n");
  }
}

/// Prints the figures that the parent process reads: one line for each size.
void print_raw(const figure& f) {
  for (std::size_t i = 0; i < f.charts.front().lines.front().points.size(); ++i) {
    for (const chart& c : f.charts) fmt::print("{:.17g} ", c.lines.front().points[i].second);
    fmt::print("\n");
  }
}

/// Measures hpe between devices without peer access. Runs in a child process, because a process can open its devices
/// only once.
void measure_without_peers(figure& f, bool gpus, std::size_t largest, unsigned repeats) {
  char self[4096] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return;
  const std::string command = fmt::format("{} '{}' --only without-peers --largest {} --repeats {}",
                                          gpus ? "HPE_CUDA_PEERS=off" : "HPE_DEVICES=soft:2x1", self, largest, repeats);
  std::fflush(stdout);
  std::FILE* const child = popen(command.c_str(), "r");  // NOLINT(cert-env33-c): the command is this benchmark itself
  if (child == nullptr) return;
  const std::string name = "hpe without peer access";
  for (chart& c : f.charts) c.lines.push_back({name, {}});
  double values[3];
  for (std::size_t bytes = smallest;
       bytes <= largest && std::fscanf(child, "%lf %lf %lf", &values[0], &values[1], &values[2]) == 3; bytes *= 4)
    for (std::size_t i = 0; i < f.charts.size(); ++i)
      f.charts[i].lines.back().points.emplace_back(static_cast<double>(bytes), values[i]);
  if (pclose(child) != 0) fmt::print(stderr, "the measurement without peer access failed\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t largest = 0;
  std::string only;
  const auto arguments = hpe::bench::parse(
      argc, argv, "throughput of transfers of 4 KiB to 1 GiB, compared with copies by hand, as table and charts",
      {{"--largest", "SIZE", "the size of the largest transfer, for example 64M (1G; 256M for soft devices)",
        hpe::bench::to_whole(largest, smallest, 16 * gibi)},
       {"--only", "PART", "without-peers: print only numbers, of hpe between two devices without peer access",
        hpe::bench::to_word(only, {"without-peers"})}});
  const int devices = hpe::device_count();
  const bool gpus = hpe::bench::on_gpus();
  if (largest == 0) largest = gpus ? gibi : 256 * mebi;
  partner second;
  arrays data(largest);
  const scheme hpe_itself = through_hpe(data);
  if (!only.empty()) {
    figure f = make_figure(only);
    measure(f, hpe_itself, {0, 1}, largest, arguments.repeats, second);
    print_raw(f);
    return 0;
  }

  hpe::bench::bare_copies bare((gpus ? "cuda:" : "soft:") + std::to_string(std::min(devices, 2)), largest);
  hpe::bench::pageable_copy driver(largest);
  const scheme plain{"pinned, or peer copy", [&](direction way, int lane, std::size_t n) { bare.plain(way, lane, n); }};
  const scheme staged{"one pinned buffer",
                      [&](direction way, int lane, std::size_t n) { bare.staged(way, lane, data.pageable(lane), n); }};
  const scheme doubled{"double-buffered by hand", [&](direction way, int lane, std::size_t n) {
                         bare.double_buffered(way, lane, data.pageable(lane), n);
                       }};
  const scheme pageable{"pageable, by the driver", [&](direction way, int lane, std::size_t n) {
                          if (way.from == host)
                            driver.up(lane, data.pageable(lane), n);
                          else
                            driver.down(lane, data.pageable(lane), n);
                        }};

  struct part {
    const char* name;
    direction way;
  };
  std::vector<hpe::bench::picture> all;
  for (const part& it :
       {part{"host to device", {host, 0}}, part{"device to host", {0, host}}, part{"device to device", {0, 1}}}) {
    const bool between = it.way.from != host && it.way.to != host;
    if (between && devices < 2) continue;
    figure f = make_figure(it.name);
    std::vector<const scheme*> schemes{&hpe_itself};
    if (bare.direct(it.way)) schemes.push_back(&plain);
    schemes.insert(schemes.end(), {&staged, &doubled});
    if (!between && driver.exists()) schemes.push_back(&pageable);
    for (const scheme* s : schemes) measure(f, *s, it.way, largest, arguments.repeats, second);
    if (between) measure_without_peers(f, gpus, largest, arguments.repeats);
    if (!arguments.quiet && arguments.json != "-") print(f);
    all.push_back({it.name, f.charts});
  }
  hpe::command_line::write_text(hpe::bench::as_json(std::string("Transfers: ") + hpe::device_info(0).name, all),
                                arguments.json);
  return 0;
}
