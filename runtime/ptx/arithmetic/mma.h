#pragma once

/// mma.sync, and the instructions that move its fragments: ldmatrix, stmatrix and movmatrix (PTX ISA, "Warp Level
/// Matrix Multiply-Accumulate Instructions"). hpe adds the products in f64 and rounds the sum once; a GPU may add and
/// round in another order.

#include <optional>

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// D = A * B + C, where D has m rows and n columns, and A has k columns. The figures of the PTX ISA define which thread
/// holds which element. Lane 4 g + t holds, if a register contains w elements:
///   - in register r of A, w elements of row g + 8 (r mod 2), from column w t + 4 w (r / 2) on
///   - in register r of B, w elements of column g, from row w t + 4 w r on
///   - as element e of C or D, the element in row g + 8 (e / 2) and column 2 t + e mod 2
struct mma_shape {
  unsigned m = 0, n = 0, k = 0;
  type a = type::none, b = type::none, c = type::none, d = type::none;

  /// Returns the number of elements in one register.
  [[nodiscard]] static unsigned elements_of(type t);
  [[nodiscard]] unsigned a_registers() const { return m * k / 32 / elements_of(a); }
  [[nodiscard]] unsigned b_registers() const { return n * k / 32 / elements_of(b); }
  [[nodiscard]] unsigned accumulator_registers(type t) const { return m * n / 32 / elements_of(t); }
};

/// Returns the shape of an mma instruction; empty if hpe does not support the shape. hpe does not support the shapes of
/// Volta, elements of fewer than 8 bits, and 8-bit floating-point elements.
[[nodiscard]] std::optional<mma_shape> mma_shape_of(const instruction& i);

/// multiply_fragments executes an mma instruction for a warp; move_matrices executes ldmatrix, stmatrix or movmatrix.
/// `first` is the thread of lane 0.
void multiply_fragments(block_context& block, const instruction& what, std::uint32_t first);
void move_matrices(block_context& block, const instruction& what, std::uint32_t first);

}  // namespace hpe::ptx
