#pragma once

/// One instruction as the PTX text spells it, before the parser resolves names.

#include <string_view>
#include <vector>

#include "runtime/ptx/program/instruction_table.h"

namespace hpe::ptx {

/// An operand as the PTX text spells it.
struct operand_syntax {
  enum class kind : std::uint8_t {
    word,     // `text`; also the member ("x" of "%tid.x") or the value (8 of "name+8")
    integer,  // `value` is the number
    float32,  // `value` contains the bits
    float64,
    vector,   // {parts}
    address,  // [parts[0]]; for a texture [parts[0], parts[1]]
    list,     // (parts) in a call
  };
  kind what = kind::word;
  bool negated = false;  // !p
  std::string_view text;
  std::string_view member;
  std::uint64_t value = 0;
  std::vector<operand_syntax> parts;
  std::vector<operand_syntax> second;  // p|q: one element, q

  [[nodiscard]] bool is_sink() const { return what == kind::word && text == "_"; }
};

struct statement {
  const instruction_form* form = nullptr;
  std::vector<type> types;
  modifier_set modifiers;
  std::vector<operand_syntax> operands;
  bool guarded = false;
  bool guard_negated = false;
  std::string_view guard;
  std::uint32_t line = 0;
  std::uint32_t text_begin = 0, text_end = 0;

  [[nodiscard]] bool has(modifier m) const { return modifiers.has(m); }
  [[nodiscard]] type first_type() const { return types.empty() ? type::none : types[0]; }
};

}  // namespace hpe::ptx
