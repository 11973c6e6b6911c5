// Statements of pure instructions (instruction.def). A statement with several results becomes several instructions.

#include <fmt/core.h>

#include "runtime/ptx/build/builder.h"

namespace hpe::ptx {

void builder::build_pure() {
  switch (statement_.form->op) {
    case opcode::mov: return build_mov();
    case opcode::setp: return build_setp();
    case opcode::addc:
    case opcode::subc:
    case opcode::madc: return build_carry();
    case opcode::add:
    case opcode::sub:
    case opcode::mad:
      if (statement_.has(modifier::cc)) return build_carry();
      break;
    default: break;
  }
  instruction i = make();
  if (statement_.types.empty()) fail("the type is missing");
  // Only immediates need the type of their operand. The letter in the form's `operands` names the type: the second type
  // for 's', and so on (instruction.def).
  const std::string_view shape = statement_.form->operands;
  i.results = {result(written(0))};
  if (!i.results[0].is_register()) return;  // the program ignores the result
  for (std::size_t n = 1; n < statement_.operands.size(); ++n) {
    const std::size_t at = shape == "*" ? std::string_view::npos : shape.find('=') + n;
    const char letter = at < shape.size() ? shape[at] : 't';
    type t = i.types[0];
    if (letter == 's' || shape == "*") t = i.second_type();
    if (letter == 'u') t = type::u32;
    if (letter == 'p') t = type::pred;
    if (letter == 'w' && statement_.has(modifier::wide)) t = bits_of(t) == 16 ? type::u32 : type::u64;
    i.sources.push_back(lookup(written(n), t));
  }
  const bool with_predicate = statement_.form->op == opcode::set && i.sources.size() == 3;
  if (!with_predicate) return append(std::move(i));
  // set.CmpOp.BoolOp d, a, b, c becomes a setp, the logic operation and a selection.
  const operand first = temporary(type::pred), both = temporary(type::pred);
  instruction compare = make(opcode::setp, i.second_type());
  compare.modifiers = i.modifiers;
  compare.results = {first};
  compare.sources = {i.sources[0], i.sources[1]};
  const bool is_and = i.has(modifier::op_and), is_or = i.has(modifier::op_or);
  append(std::move(compare));
  append(is_and ? opcode::and_ : is_or ? opcode::or_ : opcode::xor_, type::pred, {both}, {first, i.sources[2]});
  operand yes, no;
  yes.what = no.what = operand::kind::immediate;
  yes.value = i.types[0] == type::f32 ? 0x3f800000U : ~std::uint64_t{0} >> (64 - bits_of(i.types[0]));
  append(opcode::selp,
         bits_of(i.types[0]) == 32   ? type::b32
         : bits_of(i.types[0]) == 16 ? type::b16
                                     : type::b64,
         i.results, {yes, no, both});
}

void builder::build_mov() {
  expect(2, 2);
  const type t = statement_.first_type();
  if (t == type::none) fail("the type is missing");
  const operand_syntax& to = written(0);
  const operand_syntax& from = written(1);
  if (to.what == operand_syntax::kind::vector) {
    const unsigned width = bits_of(t) / static_cast<unsigned>(to.parts.size());
    const type part = width == 32 ? type::b32 : width == 16 ? type::b16 : type::none;
    if (part == type::none) unsupported("a vector of this width");
    operand whole = lookup(from, t);
    for (std::size_t n = 0; n < to.parts.size(); ++n) {
      const operand element = result(to.parts[n]);
      if (!element.is_register()) continue;
      operand shift;
      shift.what = operand::kind::immediate;
      shift.value = n * width;
      append(opcode::unpack, part, {element}, {whole, shift});
    }
    return;
  }
  instruction i = make();
  i.results = {result(to)};
  if (!i.results[0].is_register()) return;
  if (from.what == operand_syntax::kind::vector) {
    i.op = opcode::pack;
    const unsigned width = bits_of(t) / static_cast<unsigned>(from.parts.size());
    i.sources = elements(from, width == 32 ? type::b32 : type::b16, false);
  } else {
    i.sources = {lookup(from, t)};
  }
  append(std::move(i));
}

void builder::build_setp() {
  expect(3, 4);
  instruction compare = make();
  if (statement_.types.empty()) fail("the type is missing");
  const type t = compare.types[0];
  const operand p = result(written(0));
  const operand q = written(0).second.empty() ? operand{} : result(written(0).second[0]);
  const std::vector<operand> sources{lookup(written(1), t), lookup(written(2), t)};
  compare.sources = sources;
  if (t == type::f16x2 || t == type::bf16x2) {
    // p is the comparison of the lower halves, and q is the comparison of the upper halves. The code tests one bit in
    // each half of the result of a set.f16x2.
    const operand both = temporary(type::b32);
    instruction set = make(opcode::set, t);
    set.types[1] = t;
    set.modifiers = compare.modifiers;
    set.results = {both};
    set.sources = sources;
    append(std::move(set));
    if (statement_.operands.size() > 3) unsupported("a predicate operand of packed halves");
    operand bit;
    bit.what = operand::kind::immediate;
    bit.value = t == type::f16x2 ? 13 : 9;  // a bit that is set in the number 1: 0x3c00 in f16, 0x3f80 in bf16
    if (p.is_register()) append(opcode::half_select, type::b32, {p}, {both, bit});
    bit.value += 16;
    if (q.is_register()) append(opcode::half_select, type::b32, {q}, {both, bit});
    return;
  }
  if (statement_.operands.size() == 3 && !q.is_register()) {
    if (!p.is_register()) return;
    compare.results = {p};
    return append(std::move(compare));
  }
  // The result registers may also be operands or the guard, so the code first stores the guard and the comparison in
  // temporary registers.
  const operand first = temporary(type::pred), inverse = temporary(type::pred);
  operand kept;
  if (guard_.is_register()) {
    kept = temporary(type::pred);
    const operand guard = guard_;
    guard_ = {};
    append(opcode::mov, type::pred, {kept}, {guard});
    guard_ = kept;
    compare.guard = kept;
  }
  compare.results = {first};
  append(std::move(compare));
  append(opcode::not_, type::pred, {inverse}, {first});
  if (statement_.operands.size() == 3) {
    if (p.is_register()) append(opcode::mov, type::pred, {p}, {first});
    if (q.is_register()) append(opcode::mov, type::pred, {q}, {inverse});
    return;
  }
  const opcode combine = statement_.has(modifier::op_and)  ? opcode::and_
                         : statement_.has(modifier::op_or) ? opcode::or_
                                                           : opcode::xor_;
  const operand other = temporary(type::pred);
  append(opcode::mov, type::pred, {other}, {lookup(written(3), type::pred)});
  if (p.is_register()) append(combine, type::pred, {p}, {first, other});
  if (q.is_register()) append(combine, type::pred, {q}, {inverse, other});
}

void builder::build_carry() {
  // The carry flag is a predicate register of the function. The result d may also be an operand, so the code computes
  // the flag before d.
  if (!context_.carry) context_.carry = context_.new_register(type::pred, "CC.CF");
  operand flag;
  flag.what = operand::kind::reg;
  flag.index = *context_.carry;
  const type t = statement_.first_type();
  const opcode op = statement_.form->op;
  const bool multiplies = op == opcode::mad || op == opcode::madc;
  const bool subtracts = op == opcode::sub || op == opcode::subc;
  const bool takes = op == opcode::addc || op == opcode::subc || op == opcode::madc;
  expect(multiplies ? 4 : 3, multiplies ? 4 : 3);
  const operand d = result(written(0));
  operand a = lookup(written(1), t), b = lookup(written(2), t);
  if (multiplies) {
    instruction product = make(opcode::mul, t);
    product.modifiers.add(statement_.has(modifier::hi) ? modifier::hi : modifier::lo);
    product.results = {temporary(t)};
    product.sources = {a, b};
    a = product.results[0];
    append(std::move(product));
    b = lookup(written(3), t);
  }
  operand carry_in = flag;
  if (!takes) {
    carry_in = {};
    carry_in.what = operand::kind::immediate;
  }
  const operand carry = temporary(type::pred);
  if (statement_.has(modifier::cc))
    append(subtracts ? opcode::borrow_out : opcode::carry_out, t, {carry}, {a, b, carry_in});
  if (d.is_register()) append(subtracts ? opcode::sub_borrow : opcode::add_carry, t, {d}, {a, b, carry_in});
  if (statement_.has(modifier::cc)) append(opcode::mov, type::pred, {flag}, {carry});
}

}  // namespace hpe::ptx
