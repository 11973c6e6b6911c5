// Defines the kernels under names without an instruction set; each calls the variant for the best instruction set that
// the machine supports.

#include "hpe/kernel.h"
#include "kernels/fft_parameters.h"

namespace {

hpeHostKernel pick(hpeHostKernel baseline, hpeHostKernel avx2, hpeHostKernel avx512) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return avx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2 : baseline;
}

}  // namespace

extern "C" {

#define HPE_KERNEL(name, ...)                                                                       \
  void name##_baseline(const void* parameters, const hpeTiles* tiles);                              \
  void name##_avx2(const void* parameters, const hpeTiles* tiles);                                  \
  void name##_avx512(const void* parameters, const hpeTiles* tiles);                                \
  __attribute__((visibility("default"))) void name(const void* parameters, const hpeTiles* tiles) { \
    static const hpeHostKernel body = pick(name##_baseline, name##_avx2, name##_avx512);            \
    body(parameters, tiles);                                                                        \
  }
#include "kernels/fft/kernels.def"
}
