// A kernel on device 0 writes a vector, and a kernel on device 1 reads it. The program only
// names the data of each launch; hpe derives the order of the launches.

#include <cstdio>
#include <hpe/hpe.hpp>

#include "kernels.h"

int main() try {
  const hpe::module kernels("./libkernels.so");
  const hpe::kernel<fill_parameters> fill(kernels, "fill");
  const hpe::kernel<saxpy_parameters> saxpy(kernels, "saxpy");
  constexpr std::size_t count = 1 << 20;

  hpe::array<float> x(count, hpe::on_device(0));
  hpe::array<float> y(count, hpe::on_device(1));

  // These two launches run side by side, because they use different data.
  hpe::launch_on(0, fill, hpe::grid(64), {x.data(), count, 0}, hpe::out(x));
  hpe::launch_on(1, fill, hpe::grid(64), {y.data(), count, 100}, hpe::out(y));
  // This launch runs after both of them, because it reads x and y.
  hpe::launch_on(1, saxpy, hpe::grid(64), {x.data(), y.data(), count, 10}, hpe::in(x),
                 hpe::inout(y));
  // This launch runs after saxpy, because it overwrites x, which saxpy reads.
  hpe::launch_on(0, fill, hpe::grid(64), {x.data(), count, -1}, hpe::out(x));

  std::printf("x[7] = %g, y[7] = %g\n", x[7], y[7]);
  return 0;
} catch (const hpe::error& failure) {
  std::fprintf(stderr, "%s: %s\n", hpeStatusName(failure.status()), failure.what());
  return 1;
}
