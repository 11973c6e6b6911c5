#pragma once

/// Declares the kernels for CPUs, and the variants of each kernel for different processors.

#include "hpe/kernel.h"

#define HPE_DECLARE_VARIANTS(name)                                     \
  void name(const void* parameters, const hpeTiles* tiles);            \
  void name##_baseline(const void* parameters, const hpeTiles* tiles); \
  void name##_avx2(const void* parameters, const hpeTiles* tiles);     \
  void name##_avx512(const void* parameters, const hpeTiles* tiles);

extern "C" {
#define HPE_KERNEL(name, ...) HPE_DECLARE_VARIANTS(name)
#include "kernels/kernels.def"
}
