// A program for which a report contains advice: a device writes an array repeatedly, and CPU code reads single elements
// of it, far apart and in random order, so that each read waits for the device.
#include <cstdio>

#include "hpe/hpe.hpp"

int main() {
  constexpr std::size_t count = std::size_t{16} << 20;
  constexpr std::size_t samples = 64;
  const hpe::array<float> data(count);
  float sum = 0;
  for (int round = 0; round < 40; ++round) {
    hpe::check(hpeMemset(data.data(), round, count * sizeof(float)));
    for (std::size_t i = 0; i < samples; ++i) {
      const std::size_t at = i * 7919 % samples * (count / samples);
      sum += data[at];  // reads
    }
  }
  std::printf("%g\n", static_cast<double>(sum));
}
