// CPU code writes two vectors, a kernel adds them, and CPU code reads the sum. CPU code and
// the kernel use the same pointers, and the program copies nothing.

#include <algorithm>
#include <cstdio>
#include <hpe/hpe.hpp>

#include "kernels.h"

int main() try {
  const hpe::kernel<saxpy_parameters> saxpy(hpe::module("./libkernels.so"), "saxpy");
  constexpr std::size_t count = 1 << 20;

  hpe::array<float> x(count);
  hpe::array<float> y(count);
  std::fill(x.begin(), x.end(), 1.0F);
  std::fill(y.begin(), y.end(), 2.0F);

  hpe::launch(saxpy, hpe::grid(64), {x.data(), y.data(), count, 3.0F}, hpe::in(x),
              hpe::inout(y));

  std::printf("y[0] = %g, y[%zu] = %g\n", y[0], count - 1, y[count - 1]);
  return 0;
} catch (const hpe::error& failure) {
  std::fprintf(stderr, "%s: %s\n", hpeStatusName(failure.status()), failure.what());
  return 1;
}
