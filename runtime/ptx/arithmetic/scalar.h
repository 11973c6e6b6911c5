#pragma once

/// The functions that compute pure instructions (instruction.def): one for each opcode and type. The interpreter calls
/// these functions. Compiled code calls them for the instructions that the compiler does not translate to LLVM
/// instructions. Where the PTX ISA leaves a result undefined, the comment at the beginning of each file defines the
/// result in hpe.
///
/// The fourth argument is the fourth operand. For an instruction with fewer operands, the fourth argument is the
/// descriptor, which contains rounding, saturation, comparison and the types of a conversion.

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

enum class rounding : std::uint8_t { nearest_even, toward_zero, down, up, nearest_away };

/// The modifiers that an instruction's function needs, packed into the function's fourth argument.
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

/// Returns the function of an instruction; null if hpe does not support the combination of types and modifiers.
[[nodiscard]] scalar_function find_scalar(const instruction& i);

/// Sets the members with which engines execute an instruction of kind `pure`. To be called when its operation, types
/// and modifiers are set. Returns false if hpe does not support their combination.
bool set_scalar(instruction& i);

// Each of these functions returns the function of an instruction of one kind, and null for other instructions.
[[nodiscard]] scalar_function find_integer_scalar(const instruction& i);
[[nodiscard]] scalar_function find_bit_scalar(const instruction& i);
[[nodiscard]] scalar_function find_video_scalar(const instruction& i);
[[nodiscard]] scalar_function find_float_scalar(const instruction& i);
[[nodiscard]] scalar_function find_half_scalar(const instruction& i);
[[nodiscard]] scalar_function find_compare_scalar(const instruction& i);
[[nodiscard]] scalar_function find_conversion_scalar(const instruction& i);

/// The interpreter and compiled code compute ex2.approx as 2^x = 2^n * p(x - n), where n is the integer nearest to x
/// and p is the polynomial with these coefficients. Both first limit |x| to exp2_limit, and evaluate p in double
/// precision by Horner's rule with fused multiply-adds.
inline constexpr double exp2_coefficients[] = {  // ln(2)^k / k!
    0x1p+0,
    0x1.62e42fefa39efp-1,
    0x1.ebfbdff82c58fp-3,
    0x1.c6b08d704a0c0p-5,
    0x1.3b2ab6fba4e77p-7,
    0x1.5d87fe78a6731p-10,
    0x1.430912f86c787p-13,
    0x1.ffcbfc588b0c7p-17,
    0x1.62c0223a5c824p-20,
    0x1.b5253d395e7c4p-24,
    0x1.e4cf5158b8ecap-28,
    0x1.e8cac7351bb25p-32,
    0x1.c3bd650fc2986p-36};
inline constexpr double exp2_limit = 200;  // if |x| is larger, 2^x as f32 is infinity or 0
/// The low bits of x + exp2_rounder contain the integer nearest to x, if |x| is small.
inline constexpr double exp2_rounder = 0x1.8p52;

}  // namespace hpe::ptx
