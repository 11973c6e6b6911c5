#pragma once

/// The matrices of wmma: their sizes, and which thread holds which element. PTX leaves the latter open; here element e
/// of thread t, in a matrix with n elements per thread, is number t * n + e in row order.

#include <optional>

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

struct matrix_part {
  unsigned rows = 0, columns = 0;
  type element = type::none;
  unsigned registers = 0;  // 32-bit registers per thread as in PTX; some forms have more than the elements need

  [[nodiscard]] unsigned elements_per_thread() const { return rows * columns / 32; }
};

struct matrix_shape {
  matrix_part a, b, c, d;
};

/// None if the combination is not supported.
[[nodiscard]] std::optional<matrix_shape> matrix_shape_of(const instruction& i);
/// The matrix that a load or store moves.
[[nodiscard]] matrix_part part_of(const instruction& i, const matrix_shape& shape);

}  // namespace hpe::ptx
