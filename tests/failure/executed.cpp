// A program that uses hpe. tests/failure/processes.cpp starts this program by exec.

#include <numeric>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"

int main() {
  const hpe::array<std::uint32_t> a(1 << 20);
  std::iota(a.begin(), a.end(), 0U);
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), a.size(), 1, 0}, hpe::inout(a));
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != i + 1) return 1;
  return 0;
}
