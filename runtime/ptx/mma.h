#pragma once

/// mma.sync, and ldmatrix, stmatrix and movmatrix, which move its fragments (PTX ISA, "Warp Level Matrix Multiply-
/// Accumulate Instructions"). Products are summed exactly or nearly so and rounded once; the hardware's order and
/// rounding of sums is its own.

#include <optional>

#include "runtime/ptx/block.h"

namespace hpe::ptx {

/// D = A * B + C with m rows, n columns and k products. Threads hold elements as the ISA's figures show: with w
/// elements in a register, lane g * 4 + t has in register r of A row g + 8 (r mod 2), of B column g, in both the w
/// places of k from w t + 4 w (r / 2), in B 4 w r; and of C and D row g + 8 (e / 2) and column 2 t + e mod 2 as element
/// e.
struct mma_shape {
  unsigned m = 0, n = 0, k = 0;
  type a = type::none, b = type::none, c = type::none, d = type::none;

  /// In one register.
  [[nodiscard]] static unsigned elements_of(type t);
  [[nodiscard]] unsigned a_registers() const { return m * k / 32 / elements_of(a); }
  [[nodiscard]] unsigned b_registers() const { return n * k / 32 / elements_of(b); }
  [[nodiscard]] unsigned accumulator_registers(type t) const { return m * n / 32 / elements_of(t); }
};

/// None for what is not supported: shapes of Volta, and elements of fewer than 8 bits or in 8-bit floating point.
[[nodiscard]] std::optional<mma_shape> mma_shape_of(const instruction& i);

/// The meetings; first is the thread of lane 0.
void multiply_fragments(block_context& block, const instruction& what, std::uint32_t first);
void move_matrices(block_context& block, const instruction& what, std::uint32_t first);

}  // namespace hpe::ptx
