#pragma once

/// Declares the kernels for CPUs, and the variants of each kernel for different processors.

#include "hpe/kernel.h"

extern "C" {
#define HPE_KERNEL(name, ...)                                          \
  void name(const void* parameters, const hpeTiles* tiles);            \
  void name##_baseline(const void* parameters, const hpeTiles* tiles); \
  void name##_avx2(const void* parameters, const hpeTiles* tiles);     \
  void name##_avx512(const void* parameters, const hpeTiles* tiles);
#include "kernels/kernels.def"
}
