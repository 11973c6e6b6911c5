#pragma once

/// Roots of unity in double precision, as products of entries of two small tables: w_n^m = coarse[m >> shift] * fine[m
/// & mask], for 0 <= m < n.

#include <stdint.h>

#include "kernels/fft_parameters.h"

namespace hpe::kernels {

struct root_table {
  const complex_number<double>* coarse;
  const complex_number<double>* fine;
  int32_t shift;
  int64_t mask;
};

/// Returns the tables for n >= 1. The first call for an n creates the tables, which exist until the process ends.
/// Thread-safe.
__attribute__((visibility("default"))) root_table roots_of_unity(int64_t n);

}  // namespace hpe::kernels
