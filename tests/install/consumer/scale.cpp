// One pointer: the CPU fills the memory, each device scales its part, and the CPU reads the result. argv[1] names the
// kernels' file.

#include <algorithm>
#include <cstdio>
#include <hpe/hpe.hpp>

#include "scale_kernels.h"

int main(int, char** argv) try {
  const hpe::kernel<scale_parameters> scale(hpe::module(argv[1]), "scale");
  const int devices = hpe::device_count();
  const std::size_t part = std::size_t{1} << 20;

  hpe::array<float> data(part * devices, hpe::block_distribution());  // one pointer, memory on every device
  std::fill(data.begin(), data.end(), 1.0F);                          // plain CPU code
  for (int d = 0; d < devices; ++d) {
    const std::span<float> mine = data.subspan(d * part, part);
    hpe::launch_on(d, scale, hpe::grid(64), {mine.data(), mine.size(), d + 2.0F}, hpe::inout(mine));
  }
  for (int d = 0; d < devices; ++d) {  // needs no copy and no wait: the read below waits
    const std::span<float> mine = data.subspan(d * part, part);
    if (std::any_of(mine.begin(), mine.end(), [&](float x) { return x != d + 2.0F; })) return 1;
  }
  std::printf("%d devices scaled their parts\n", devices);
  return 0;
} catch (const hpe::error& failure) {
  std::fprintf(stderr, "%s: %s\n", hpeStatusName(failure.status()), failure.what());
  return 2;
}
