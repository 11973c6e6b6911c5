#include "runtime/ptx/program/instruction_table.h"

#include <algorithm>
#include <unordered_map>

#include "runtime/base/error.h"

namespace hpe::ptx {

namespace {

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

instruction_form make_form(opcode op, std::string_view mnemonic, kind k, std::string_view operands,
                           std::string_view types, std::string_view modifiers) {
  instruction_form form{op, mnemonic, k, operands, {}, {}};
  for (const std::string_view name : words(types)) form.types.push_back(type_of_name(name).value());
  for (const std::string_view name : words(modifiers)) form.modifiers.add(modifier_of_name(name).value());
  return form;
}

const std::vector<instruction_form>& forms() {
  // This table is never destroyed, because programs may launch kernels while they exit.
  static const auto& all = *new const std::vector<instruction_form>{
#define PTX_INSTRUCTION(identifier, mnemonic, kind_, operands, types, modifiers) \
  make_form(opcode::identifier, mnemonic, kind::kind_, operands, types, modifiers),
#include "runtime/ptx/program/instruction.def"
#undef PTX_INSTRUCTION
  };
  return all;
}

std::unordered_map<std::string_view, const instruction_form*> forms_by_name() {
  std::unordered_map<std::string_view, const instruction_form*> index;
  for (const instruction_form& form : forms()) index.emplace(form.mnemonic, &form);
  return index;
}

}  // namespace

bool instruction_form::takes(type t) const { return std::find(types.begin(), types.end(), t) != types.end(); }

const instruction_form& form_of(opcode op) { return forms()[static_cast<std::size_t>(op)]; }

const instruction_form* find_form(std::string_view mnemonic) {
  // This table is never destroyed, because programs may launch kernels while they exit.
  static const auto& index = *new const std::unordered_map<std::string_view, const instruction_form*>(forms_by_name());
  const auto found = index.find(mnemonic);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace hpe::ptx
