#pragma once

/// The types of instructions and declarations in PTX (PTX ISA 9.0, section 5.2).

#include <cstdint>
#include <optional>
#include <string_view>

namespace hpe::ptx {

enum class type : std::uint8_t {
  none,
  pred,
  b8,
  u8,
  s8,
  b16,
  u16,
  s16,
  f16,
  bf16,
  b32,
  u32,
  s32,
  f32,
  f16x2,
  bf16x2,
  u16x2,
  s16x2,
  tf32,
  b64,
  u64,
  s64,
  f64,
  b128,
  e4m3x2,
  e5m2x2,
};

/// Returns the type with a name such as "u32", given without the leading dot; empty if there is none.
[[nodiscard]] std::optional<type> type_of_name(std::string_view name);
[[nodiscard]] std::string_view name_of(type t);

/// Returns the number of bits of a value: 0 for none, 1 for a predicate.
[[nodiscard]] unsigned bits_of(type t);
/// Returns the size of a value in memory in bytes; 0 for none and pred.
[[nodiscard]] unsigned bytes_of(type t);
[[nodiscard]] bool is_signed(type t);
/// Returns whether the type is f16, bf16, f32, f64 or a packed form, including e4m3x2 and e5m2x2.
[[nodiscard]] bool is_float(type t);

}  // namespace hpe::ptx
