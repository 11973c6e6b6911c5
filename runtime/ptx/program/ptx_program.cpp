#include "runtime/ptx/program/ptx_program.h"

#include <algorithm>

namespace hpe::ptx {

void program::leave_out(function& f, const std::string& why) {
  for (const instruction& i : f.code)
    for (const operand& o : i.sources)
      if (o.what == operand::kind::symbol) symbols[o.index].may_be_written = true;
  instruction end;
  end.op = opcode::ret;
  end.kind = kind::ret;
  f.code = {end};
  f.registers.clear();
  f.register_names.clear();
  f.scratch_size = f.local_size = 0;
  f.left_out = why;
}

const function* program::find_kernel(std::string_view name) const {
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [&](const auto& f) { return f->is_kernel && f->is_defined && f->name == name; });
  return found == functions.end() ? nullptr : found->get();
}

const symbol* program::find_symbol(std::string_view name) const {
  const auto found = std::find_if(symbols.begin(), symbols.end(), [&](const symbol& s) { return s.name == name; });
  return found == symbols.end() ? nullptr : &*found;
}

std::string program::text_of(const function& f, const instruction& i) const {
  std::string result;
  for (const char c : texts[f.text].substr(i.text_begin, i.text_end - i.text_begin)) {
    const bool is_space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!is_space) {
      result += c;
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
  }
  return result;
}

}  // namespace hpe::ptx
