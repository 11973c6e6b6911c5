#pragma once

/// Selects the variant of the kernels for the best instruction set that this machine supports.

#include "hpe/kernel.h"

namespace {

enum class variant { baseline, avx2, avx512 };

inline variant best() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    return variant::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return variant::avx2;
  return variant::baseline;
}

inline hpeHostKernel pick(hpeHostKernel baseline, hpeHostKernel avx2, hpeHostKernel avx512) {
  static const variant chosen = best();
  if (chosen == variant::avx512) return avx512;
  return chosen == variant::avx2 ? avx2 : baseline;
}

}  // namespace

/// Defines kernel `name`, which calls the variant for this machine. The macro must be used inside extern "C".
#define HPE_DISPATCHED_KERNEL(name)                                                                 \
  void name##_baseline(const void* parameters, const hpeTiles* tiles);                              \
  void name##_avx2(const void* parameters, const hpeTiles* tiles);                                  \
  void name##_avx512(const void* parameters, const hpeTiles* tiles);                                \
  __attribute__((visibility("default"))) void name(const void* parameters, const hpeTiles* tiles) { \
    static const hpeHostKernel body = pick(name##_baseline, name##_avx2, name##_avx512);            \
    body(parameters, tiles);                                                                        \
  }
