#pragma once

/// The functions that compute pure instructions: one for each opcode and type. The interpreter uses them, and the
/// compiler for instructions that it does not emit itself. Each file begins with its choices where the PTX ISA leaves
/// results open.
///
/// The fourth argument is the fourth operand or, if there is none, the instruction's descriptor with rounding,
/// saturation, comparison and the types of a conversion.

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

enum class rounding : std::uint8_t { nearest_even, toward_zero, down, up, nearest_away };

/// The modifiers that an instruction's function needs, packed into its fourth argument.
struct descriptor {
  rounding round = rounding::nearest_even;
  bool to_integral = false;  // .rni and similar modifiers
  bool ftz = false;
  bool sat = false;
  bool relu = false;
  bool nan = false;         // min.NaN
  bool xorsign = false;     // min.xorsign.abs
  bool left = false;        // shf.l
  bool wrap = false;        // shf.wrap, bmsk.wrap
  bool high = false;        // .hi
  bool accumulate = false;  // .add of video instructions
  modifier compare = modifier::count;
  type to = type::none;
  type from = type::none;
  type third = type::none;

  [[nodiscard]] std::uint64_t pack() const;
  [[nodiscard]] static descriptor unpack(std::uint64_t bits);
};

[[nodiscard]] descriptor describe(const instruction& i);

/// Null if the combination of types and modifiers is not supported.
[[nodiscard]] scalar_function find_scalar(const instruction& i);

// For one kind of instruction each; null for other instructions.
[[nodiscard]] scalar_function find_integer_scalar(const instruction& i);
[[nodiscard]] scalar_function find_bit_scalar(const instruction& i);
[[nodiscard]] scalar_function find_video_scalar(const instruction& i);
[[nodiscard]] scalar_function find_float_scalar(const instruction& i);
[[nodiscard]] scalar_function find_half_scalar(const instruction& i);
[[nodiscard]] scalar_function find_compare_scalar(const instruction& i);
[[nodiscard]] scalar_function find_conversion_scalar(const instruction& i);

}  // namespace hpe::ptx
