#pragma once

/// What each pure instruction computes: one function per opcode and type, used by the interpreter and, for what it does
/// not emit itself, by the compiler. What the PTX ISA leaves open is told at the top of each file.
///
/// The fourth argument is the fourth operand, or else the instruction's descriptor, which tells rounding, saturation,
/// comparison and the types of a conversion.

#include "runtime/ptx/program.h"

namespace hpe::ptx {

enum class rounding : std::uint8_t { nearest_even, toward_zero, down, up, nearest_away };

/// The modifiers of an instruction that its function must know, packed into the fourth argument.
struct descriptor {
  rounding round = rounding::nearest_even;
  bool to_integral = false;  // .rni and its relatives
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

/// Null where the combination of types and modifiers is not supported.
[[nodiscard]] scalar_function find_scalar(const instruction& i);

// By kind of operand; each returns null for what is not its own.
[[nodiscard]] scalar_function find_integer_scalar(const instruction& i);
[[nodiscard]] scalar_function find_bit_scalar(const instruction& i);
[[nodiscard]] scalar_function find_video_scalar(const instruction& i);
[[nodiscard]] scalar_function find_float_scalar(const instruction& i);
[[nodiscard]] scalar_function find_half_scalar(const instruction& i);
[[nodiscard]] scalar_function find_compare_scalar(const instruction& i);
[[nodiscard]] scalar_function find_conversion_scalar(const instruction& i);

}  // namespace hpe::ptx
