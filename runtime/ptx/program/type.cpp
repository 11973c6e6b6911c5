#include "runtime/ptx/program/type.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace hpe::ptx {

namespace {

struct row {
  std::string_view name;
  unsigned bits;
  bool is_signed;
  bool is_float;
};

// The rows have the order of enum type.
constexpr std::array<row, 26> rows{{
    {"", 0, false, false},       {"pred", 1, false, false},   {"b8", 8, false, false},    {"u8", 8, false, false},
    {"s8", 8, true, false},      {"b16", 16, false, false},   {"u16", 16, false, false},  {"s16", 16, true, false},
    {"f16", 16, false, true},    {"bf16", 16, false, true},   {"b32", 32, false, false},  {"u32", 32, false, false},
    {"s32", 32, true, false},    {"f32", 32, false, true},    {"f16x2", 32, false, true}, {"bf16x2", 32, false, true},
    {"u16x2", 32, false, false}, {"s16x2", 32, true, false},  {"tf32", 32, false, true},  {"b64", 64, false, false},
    {"u64", 64, false, false},   {"s64", 64, true, false},    {"f64", 64, false, true},   {"b128", 128, false, false},
    {"e4m3x2", 16, false, true}, {"e5m2x2", 16, false, true},
}};
static_assert(rows.size() == static_cast<std::size_t>(type::e5m2x2) + 1);

const row& row_of(type t) { return rows[static_cast<std::size_t>(t)]; }

}  // namespace

std::optional<type> type_of_name(std::string_view name) {
  const auto* const found = std::find_if(rows.begin() + 1, rows.end(), [&](const row& r) { return r.name == name; });
  if (found == rows.end()) return std::nullopt;
  return static_cast<type>(found - rows.begin());
}

std::string_view name_of(type t) { return row_of(t).name; }
unsigned bits_of(type t) { return row_of(t).bits; }
unsigned bytes_of(type t) { return row_of(t).bits / 8; }
bool is_signed(type t) { return row_of(t).is_signed; }
bool is_float(type t) { return row_of(t).is_float; }

}  // namespace hpe::ptx
