// A kernel on device 0 writes a vector, a kernel on device 1 reads it. The program names
// the data and nothing else.

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

  // Side by side: they use different data.
  hpe::launch_on(0, fill, hpe::grid(64), {x.data(), count, 0}, hpe::out(x));
  hpe::launch_on(1, fill, hpe::grid(64), {y.data(), count, 100}, hpe::out(y));
  // After both of them: it reads x and y.
  hpe::launch_on(1, saxpy, hpe::grid(64), {x.data(), y.data(), count, 10}, hpe::in(x),
                 hpe::inout(y));
  // After saxpy: it overwrites what saxpy reads.
  hpe::launch_on(0, fill, hpe::grid(64), {x.data(), count, -1}, hpe::out(x));

  std::printf("x[7] = %g, y[7] = %g\n", x[7], y[7]);
  return 0;
} catch (const hpe::error& failure) {
  std::fprintf(stderr, "%s: %s\n", hpeStatusName(failure.status()), failure.what());
  return 1;
}
