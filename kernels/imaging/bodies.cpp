// The kernels of hpe's imaging programs for soft devices. A range of tiles computes a contiguous range of elements.

#include <cstring>

#include "hpe/kernel.h"
#include "kernels/imaging.h"
#include "kernels/rays.h"

#define HPE_IMAGING(name, Parameters)                                                                             \
  HPE_HOST_KERNEL(name, Parameters) {                                                                             \
    const uint64_t all = uint64_t{tiles->grid[0]} * tiles->grid[1] * tiles->grid[2], count = parameters->count(); \
    const Parameters own = *parameters;                                                                           \
    for (uint64_t i = count * tiles->begin / all; i < count * tiles->end / all; ++i) own.element(i);              \
  }
#include "kernels/imaging/imaging.def"

// Multiplies each value of a row of `a` by a whole row of `b`. The loops process `b` in blocks that stay in the cache.
HPE_HOST_KERNEL(imaging_multiply, hpe::kernels::multiply_matrices) {
  const auto& p = *parameters;
  const uint64_t all = uint64_t{tiles->grid[0]} * tiles->grid[1] * tiles->grid[2];
  const auto first = int32_t(uint64_t(p.rows) * tiles->begin / all), end = int32_t(uint64_t(p.rows) * tiles->end / all);
  constexpr int32_t block = 128;
  const auto least = [](int32_t a, int32_t b) { return a < b ? a : b; };
  if (p.accumulate == 0)
    memset(p.c + int64_t(first) * p.columns, 0, sizeof(float) * uint64_t(end - first) * uint64_t(p.columns));
  for (int32_t k0 = 0; k0 < p.inner; k0 += block)
    for (int32_t j0 = 0; j0 < p.columns; j0 += 2 * block) {
      const int32_t j1 = least(p.columns, j0 + 2 * block), k1 = least(p.inner, k0 + block);
      for (int32_t i = first; i < end; ++i) {
        float* const c = p.c + int64_t(i) * p.columns;
        for (int32_t k = k0; k < k1; ++k) {
          const float a = p.a[int64_t(i) * p.inner + k];
          const float* const b = p.b + int64_t(k) * p.columns;
          for (int32_t j = j0; j < j1; ++j) c[j] += a * b[j];
        }
      }
    }
}
