// Distributes one vector over all devices. Each device fills its own part; CPU code uses
// the whole vector.

#include <cstdio>
#include <hpe/hpe.hpp>
#include <numeric>

#include "kernels.h"

int main() try {
  const hpe::kernel<fill_parameters> fill(hpe::module("./libkernels.so"), "fill");
  const int devices = hpe::device_count();
  const std::size_t part = hpe::granularity() / sizeof(float);
  const std::size_t count = devices * part;

  hpe::array<float> data(count, hpe::block_distribution());
  for (int d = 0; d < devices; ++d) {
    const std::span<float> mine = data.subspan(d * part, part);
    const auto first = static_cast<float>(d * part);
    hpe::launch_on(d, fill, hpe::grid(64), {mine.data(), part, first}, hpe::out(mine));
  }

  for (int d = 0; d < devices; ++d)
    std::printf("element %7zu lies on device %d\n", d * part,
                hpe::pointer_info(&data[d * part]).device);
  const double sum = std::accumulate(data.begin(), data.end(), 0.0);
  std::printf("the sum of 0 to %zu is %.0f\n", count - 1, sum);
  return 0;
} catch (const hpe::error& failure) {
  std::fprintf(stderr, "%s: %s\n", hpeStatusName(failure.status()), failure.what());
  return 1;
}
