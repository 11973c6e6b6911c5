// Statements on matrices: wmma, mma.sync, and moves of their fragments.

#include "runtime/base/error.h"
#include "runtime/ptx/arithmetic/mma.h"
#include "runtime/ptx/build/builder.h"
#include "runtime/ptx/program/matrix_shape.h"

namespace hpe::ptx {

void builder::build_matrix() {
  switch (statement_.form->op) {
    case opcode::wmma: return build_wmma();
    case opcode::mma: return build_mma();
    default: return build_matrix_move();
  }
}

void builder::require_bits(const std::vector<operand>& fragment, unsigned bits) const {
  for (const operand& o : fragment)
    if (o.is_register() && bits_of(context_.function.registers[o.index]) != bits)
      fail(fmt::format("the registers of a fragment must have {} bits", bits));
}

// sources: for a load, the address and the stride; for a store, the address, the stride and the fragment; for mma, the
// three fragments
void builder::build_wmma() {
  instruction i = make();
  const auto shape = matrix_shape_of(i);
  if (!shape) unsupported("this shape, or combination of types,");
  const auto fragment = [&](std::size_t n, const matrix_part& part, bool is_result) {
    std::vector<operand> found = elements(written(n), part.register_type(), is_result);
    if (found.size() != part.registers)
      fail(fmt::format("a fragment of {} registers, expected {}", found.size(), part.registers));
    require_bits(found, bits_of(part.register_type()));
    return found;
  };
  const auto stride_of = [&](const operand_syntax* syntax, unsigned packed) {
    if (syntax != nullptr) return lookup(*syntax, type::u32);
    operand stride;
    stride.what = operand::kind::immediate;
    stride.value = packed;
    return stride;
  };
  if (statement_.has(modifier::load) || statement_.has(modifier::store)) {
    const matrix_part part = part_of(i, *shape);
    const bool is_load = statement_.has(modifier::load);
    const unsigned packed = i.has(modifier::row) ? part.columns : part.rows;
    expect(2, 3);
    const operand stride = stride_of(statement_.operands.size() > 2 ? &written(2) : nullptr, packed);
    const std::vector<operand> registers = fragment(is_load ? 0 : 1, part, is_load);
    i.sources = {address(written(is_load ? 1 : 0)), stride};
    if (is_load) {
      i.results = registers;
    } else {
      i.sources.insert(i.sources.end(), registers.begin(), registers.end());
    }
    i.kind = is_load ? kind::load : kind::store;
    return append(std::move(i));
  }
  expect(4, 4);
  i.results = fragment(0, shape->d, true);
  const matrix_part* const parts[3] = {&shape->a, &shape->b, &shape->c};
  for (std::size_t n = 0; n < 3; ++n) {
    const std::vector<operand> registers = fragment(n + 1, *parts[n], false);
    i.sources.insert(i.sources.end(), registers.begin(), registers.end());
  }
  append(std::move(i));
}

// sources: the fragments of A, B and C
void builder::build_mma() {
  instruction i = make();
  const auto shape = mma_shape_of(i);
  if (!shape || !i.has(modifier::sync)) unsupported("this shape, or combination of types,");
  expect(4, 4);
  const auto fragment = [&](std::size_t n, type element, unsigned registers) {
    const type t = element == type::f64 ? type::b64 : type::b32;
    std::vector<operand> found = elements(written(n), t, n == 0);
    if (found.size() != registers)
      fail(fmt::format("a fragment of {} registers, expected {}", found.size(), registers));
    require_bits(found, bits_of(t));
    return found;
  };
  i.results = fragment(0, shape->d, shape->accumulator_registers(shape->d));
  for (std::size_t n = 1; n < 4; ++n) {
    const std::vector<operand> part = n == 1   ? fragment(n, shape->a, shape->a_registers())
                                      : n == 2 ? fragment(n, shape->b, shape->b_registers())
                                               : fragment(n, shape->c, shape->accumulator_registers(shape->c));
    i.sources.insert(i.sources.end(), part.begin(), part.end());
  }
  append(std::move(i));
}

// sources: for ldmatrix, the address of a row; for stmatrix, also the registers; for movmatrix, the register
void builder::build_matrix_move() {
  instruction i = make();
  if (!i.has(modifier::m8n8) || !i.has(modifier::sync) || i.types[0] != type::b16) unsupported("this shape or type");
  if (i.op == opcode::movmatrix) {
    expect(2, 2);
    if (!i.has(modifier::trans)) unsupported("the form without .trans");
    i.results = {result(written(0))};
    i.sources = {lookup(written(1), type::b32)};
    return append(std::move(i));
  }
  expect(2, 2);
  i.vector = i.has(modifier::x1) ? 1 : i.has(modifier::x2) ? 2 : i.has(modifier::x4) ? 4 : 0;
  if (i.vector == 0) fail("one of .x1, .x2 and .x4 is needed");
  const bool is_load = i.op == opcode::ldmatrix;
  operand row = address(written(is_load ? 1 : 0));
  if (!row.is_register()) {  // a meeting can read only registers
    const operand place = row;
    row = temporary(type::b64);
    append(opcode::mov, type::b64, {row}, {place});
  }
  const std::vector<operand> registers = elements(written(is_load ? 0 : 1), type::b32, is_load);
  if (registers.size() != i.vector) fail(fmt::format("{} registers for {} matrices", registers.size(), i.vector));
  i.sources = {row};
  if (is_load) {
    i.results = registers;
  } else {
    i.sources.insert(i.sources.end(), registers.begin(), registers.end());
  }
  append(std::move(i));
}

}  // namespace hpe::ptx
