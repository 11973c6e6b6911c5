// Heat spreads along a rod that all devices share. Before each step, neighbours exchange
// the cells at their common border. A loop on the CPU computes the same rod, and the
// program compares every bit.

#include <algorithm>
#include <cstdio>
#include <hpe/hpe.hpp>
#include <vector>

#include "kernels.h"

namespace {

constexpr std::size_t cells = 4096;  // cells of each device
constexpr int steps = 100;

/// A device's part of the rod: the values now, and the values one step later. Each array
/// has a rim of one cell at either end.
struct part {
  explicit part(int device)
      : now(cells + 2, hpe::on_device(device)), next(cells + 2, hpe::on_device(device)) {}

  hpe::array<float> now;
  hpe::array<float> next;
};

/// Copies the border cell of each of two neighbours into the rim of the other.
void exchange(part& left, part& right) {
  hpe::copy(&right.now[0], &left.now[cells], sizeof(float));
  hpe::copy(&left.now[cells + 1], &right.now[1], sizeof(float));
}

std::vector<float> on_the_cpu(std::vector<float> now) {
  std::vector<float> next(now.size());
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 1; i + 1 < now.size(); ++i) next[i] = heat(now.data(), i);
    std::swap(now, next);
  }
  return now;
}

}  // namespace

int main() try {
  const hpe::kernel<heat_parameters> heat_step(hpe::module("./libkernels.so"), "heat_step");
  const int devices = hpe::device_count();
  std::vector<part> parts;
  for (int d = 0; d < devices; ++d) parts.emplace_back(d);

  // The rod is cold except for a hot middle, where the parts of two devices meet.
  std::vector<float> rod(devices * cells + 2);
  std::fill_n(rod.begin() + static_cast<std::ptrdiff_t>(rod.size() / 2 - 50), 100, 1000.0F);
  for (int d = 0; d < devices; ++d)
    std::copy_n(&rod[d * cells], cells + 2, parts[d].now.data());

  for (int step = 0; step < steps; ++step) {
    for (int d = 0; d + 1 < devices; ++d) exchange(parts[d], parts[d + 1]);
    for (int d = 0; d < devices; ++d) {
      part& p = parts[d];
      hpe::launch_on(d, heat_step, hpe::grid(16), {p.now.data(), p.next.data(), cells},
                     hpe::in(p.now), hpe::inout(p.next));
      std::swap(p.now, p.next);
    }
  }

  const std::vector<float> expected = on_the_cpu(rod);
  for (int d = 0; d < devices; ++d) {
    const auto* const mine = &expected[d * cells + 1];
    if (!std::equal(mine, mine + cells, &parts[d].now[1])) {
      std::printf("device %d is wrong\n", d);
      return 1;
    }
  }
  std::printf("%d steps on %d devices: every bit as on the CPU\n", steps, devices);
  return 0;
} catch (const hpe::error& failure) {
  std::fprintf(stderr, "%s: %s\n", hpeStatusName(failure.status()), failure.what());
  return 1;
}
