#include "runtime/ptx/build/fold.h"

namespace hpe::ptx {

namespace {

bool is_constant(const operand& o) {
  return o.what == operand::kind::immediate || o.what == operand::kind::symbol || o.what == operand::kind::local;
}

// Returns, for each register, the only instruction that writes the register, if this instruction is an unguarded mov of
// a constant; otherwise null.
std::vector<const instruction*> constant_writers(const function& f) {
  std::vector<unsigned> writes(f.registers.size());
  std::vector<const instruction*> writers(f.registers.size());
  for (const instruction& i : f.code) {
    for (const operand& d : i.results) {
      if (!d.is_register()) continue;
      const bool constant =
          i.op == opcode::mov && !i.guard.is_register() && is_constant(i.sources[0]) && !i.sources[0].negated;
      writers[d.index] = ++writes[d.index] == 1 && constant ? &i : nullptr;
    }
  }
  return writers;
}

}  // namespace

void fold_constants(function& f) {
  const std::vector<const instruction*> writers = constant_writers(f);
  std::vector<operand> constants(f.registers.size());
  for (std::size_t r = 0; r < writers.size(); ++r)
    if (writers[r] != nullptr) constants[r] = writers[r]->sources[0];
  for (instruction& i : f.code) {
    if (i.kind == kind::call) continue;
    // Addresses may differ between threads and blocks. A meeting reads the operands of several threads from registers,
    // so addresses stay in registers there.
    const bool meets = i.kind == kind::warp || i.kind == kind::barrier || i.kind == kind::matrix;
    for (operand& o : i.sources) {
      if (!o.is_register() || constants[o.index].what == operand::kind::none) continue;
      if (meets && constants[o.index].what != operand::kind::immediate) continue;
      const operand used = o;
      o = constants[used.index];
      o.value += used.value;  // adds the constant to the offset of an address operand
      if (used.negated) o.value ^= 1;
    }
  }
}

}  // namespace hpe::ptx
