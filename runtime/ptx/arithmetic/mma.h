#pragma once

/// mma.sync, and the instructions that move its fragments: ldmatrix, stmatrix and movmatrix (PTX ISA, "Warp Level
/// Matrix Multiply- Accumulate Instructions"). Sums of products are exact or nearly exact and are rounded once; the
/// hardware's order and rounding may differ.

#include <optional>

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// D = A * B + C with m rows, n columns and k products. Threads hold elements as in the ISA's figures. If a register
/// holds w elements, register r of lane g * 4 + t holds, of A, w columns of row g + 8 (r mod 2), beginning with column
/// w t + 4 w (r / 2); and of B, w rows of column g, beginning with row w t + 4 w r. Element e of C and D is in row g +
/// 8 (e / 2) and column 2 t + e mod 2.
struct mma_shape {
  unsigned m = 0, n = 0, k = 0;
  type a = type::none, b = type::none, c = type::none, d = type::none;

  /// Elements in one register.
  [[nodiscard]] static unsigned elements_of(type t);
  [[nodiscard]] unsigned a_registers() const { return m * k / 32 / elements_of(a); }
  [[nodiscard]] unsigned b_registers() const { return n * k / 32 / elements_of(b); }
  [[nodiscard]] unsigned accumulator_registers(type t) const { return m * n / 32 / elements_of(t); }
};

/// Empty if the combination is not supported. Not supported are shapes of Volta, elements with fewer than 8 bits, and
/// 8-bit floating-point elements.
[[nodiscard]] std::optional<mma_shape> mma_shape_of(const instruction& i);

/// Execute an mma instruction or a matrix move for a warp; `first` is the thread of lane 0.
void multiply_fragments(block_context& block, const instruction& what, std::uint32_t first);
void move_matrices(block_context& block, const instruction& what, std::uint32_t first);

}  // namespace hpe::ptx
