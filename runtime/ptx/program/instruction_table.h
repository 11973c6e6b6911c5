#pragma once

/// The table of instructions (instruction.def): the name of each instruction, how hpe executes the instruction, and
/// which types and modifiers it accepts.

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/ptx/program/modifier.h"
#include "runtime/ptx/program/type.h"

namespace hpe::ptx {

enum class opcode : std::uint8_t {
#define PTX_INSTRUCTION(identifier, mnemonic, kind, operands, types, modifiers) identifier,
#include "runtime/ptx/program/instruction.def"
#undef PTX_INSTRUCTION
  count
};

/// How hpe executes an instruction.
enum class kind : std::uint8_t {
  pure,     // one result, computed from the operands by a scalar_function
  special,  // reads a special register
  load,
  store,
  atomic,
  copy_async,
  texture,        // accesses to textures and surfaces (texture_access.h)
  address_space,  // cvta, isspacep
  routine,        // executed by run_routine (routine.h)
  fence,
  nothing,
  branch,
  branch_table,
  call,
  ret,
  exit,
  trap,
  pause,  // lets other threads run
  warp,
  barrier,
  matrix,  // operations on matrices, which all threads of a warp execute together
};

struct instruction_form {
  opcode op = opcode::count;
  std::string_view mnemonic;
  ptx::kind kind = kind::pure;
  std::string_view operands;
  std::vector<type> types;
  modifier_set modifiers;

  [[nodiscard]] bool takes(type t) const;
};

[[nodiscard]] const instruction_form& form_of(opcode op);
/// Returns the form of an instruction; null if no instruction has this mnemonic.
[[nodiscard]] const instruction_form* find_form(std::string_view mnemonic);

}  // namespace hpe::ptx
