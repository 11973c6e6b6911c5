#pragma once

/// The matrices of wmma: their sizes, and which thread holds which element. PTX does not define which thread holds an
/// element. In hpe, if each thread holds n elements, element e of thread t is element number t * n + e of the matrix in
/// row order.

#include <optional>

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

struct matrix_part {
  unsigned rows = 0, columns = 0;
  type element = type::none;
  unsigned registers = 0;  // per thread, as in PTX; some forms have more registers than their elements need

  /// Returns the type of the registers that contain the elements.
  [[nodiscard]] type register_type() const { return element == type::f64 ? type::b64 : type::b32; }
  [[nodiscard]] unsigned elements_per_thread() const { return rows * columns / 32; }
};

struct matrix_shape {
  matrix_part a, b, c, d;
};

/// Returns the shape of an instruction's matrices; empty if hpe does not support the combination.
[[nodiscard]] std::optional<matrix_shape> matrix_shape_of(const instruction& i);
/// Returns the matrix that a load or store moves.
[[nodiscard]] matrix_part part_of(const instruction& i, const matrix_shape& shape);

}  // namespace hpe::ptx
