#pragma once

/// The matrices of wmma: their sizes, and which thread holds which element. PTX does not define which thread holds an
/// element. In hpe, if each thread holds n elements, element e of thread t is element t * n + e of the matrix, counted
/// row by row.

#include <optional>

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

struct matrix_part {
  unsigned rows = 0, columns = 0;
  type element = type::none;
  unsigned registers = 0;  // per thread, as in PTX; in some shapes more than the elements need

  /// Returns the type of the registers that contain the elements.
  [[nodiscard]] type register_type() const { return element == type::f64 ? type::b64 : type::b32; }
  [[nodiscard]] unsigned elements_per_thread() const { return rows * columns / 32; }
};

struct matrix_shape {
  matrix_part a, b, c, d;
};

/// Returns the shape of an instruction's matrices; empty if hpe does not support this combination of size, type and
/// layout.
[[nodiscard]] std::optional<matrix_shape> matrix_shape_of(const instruction& i);
/// Returns the matrix that a wmma.load reads or a wmma.store writes.
[[nodiscard]] matrix_part part_of(const instruction& i, const matrix_shape& shape);

}  // namespace hpe::ptx
