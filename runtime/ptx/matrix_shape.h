#pragma once

/// The matrices of wmma: sizes, and which element of which thread is which. PTX leaves the latter open; here element e
/// of thread t of a part with n elements per thread is number t * n + e in row order.

#include <optional>

#include "runtime/ptx/program.h"

namespace hpe::ptx {

struct matrix_part {
  unsigned rows = 0, columns = 0;
  type element = type::none;
  unsigned registers = 0;  // of 32 bits, per thread, as PTX has them; more than the elements need in some forms

  [[nodiscard]] unsigned elements_per_thread() const { return rows * columns / 32; }
};

struct matrix_shape {
  matrix_part a, b, c, d;
};

/// None for what is not supported.
[[nodiscard]] std::optional<matrix_shape> matrix_shape_of(const instruction& i);
/// The part that a load or store names.
[[nodiscard]] matrix_part part_of(const instruction& i, const matrix_shape& shape);

}  // namespace hpe::ptx
