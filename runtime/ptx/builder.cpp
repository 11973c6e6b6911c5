// Statements to instructions: operands, and the forms that are pure. The others are in builder_memory.cpp and
// builder_control.cpp.

#include "runtime/ptx/builder.h"

#include <bit>

#include "runtime/base/error.h"
#include "runtime/ptx/scalar.h"
#include "runtime/ptx/special_register.h"

namespace hpe::ptx {

std::uint32_t function_context::label(std::string_view name) {
  const auto [place, is_new] = label_numbers.emplace(name, static_cast<std::uint32_t>(label_positions.size()));
  if (is_new) label_positions.push_back(unplaced);
  return place->second;
}

std::uint32_t function_context::new_register(type t, std::string_view name) {
  function.registers.push_back(t);
  function.register_names.emplace_back(name);
  return static_cast<std::uint32_t>(function.registers.size() - 1);
}

std::uint32_t function_context::new_scratch(std::uint32_t size) {
  const std::uint32_t offset = scratch_top;
  scratch_top += (size + 15) / 16 * 16;
  function.scratch_size = std::max(function.scratch_size, scratch_top);
  return offset;
}

namespace {

std::string where(const function_context& context, const statement& s) {
  instruction i;
  i.text_begin = s.text_begin;
  i.text_end = s.text_end;
  return fmt::format("PTX line {}: '{}' in {}", s.line, context.program.text_of(context.function, i),
                     context.function.name);
}

std::uint64_t cut_to(std::uint64_t value, type t) {
  const unsigned bits = bits_of(t);
  return bits == 0 || bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

}  // namespace

void builder::fail(const std::string& what) const {
  HPE_THROW(HPE_ERROR_INVALID_ARGUMENT, "{}: {}", where(context_, statement_), what);
}

void builder::unsupported(const std::string& what) const {
  HPE_THROW(HPE_ERROR_NOT_SUPPORTED, "{}: {} is not supported", where(context_, statement_), what);
}

const operand_syntax& builder::written(std::size_t n) const {
  if (n >= statement_.operands.size()) fail(fmt::format("operand {} is missing", n + 1));
  return statement_.operands[n];
}

void builder::expect(std::size_t at_least, std::size_t at_most) const {
  const std::size_t n = statement_.operands.size();
  if (n < at_least || n > at_most)
    fail(fmt::format("{} operands, expected {}", n,
                     at_least == at_most ? std::to_string(at_least) : fmt::format("{} to {}", at_least, at_most)));
}

operand builder::special_register(const operand_syntax& syntax) {
  const std::string name =
      syntax.member.empty() ? std::string(syntax.text) : fmt::format("{}.{}", syntax.text, syntax.member);
  const auto found = special_register_of_name(name);
  if (!found) fail(fmt::format("'{}' is not declared", name));
  const type t = type_of(*found);
  operand destination;
  destination.what = operand::kind::reg;
  destination.index = context_.new_register(t);
  operand which;
  which.what = operand::kind::immediate;
  which.value = static_cast<std::uint64_t>(*found);
  instruction i = make(opcode::special, t);
  i.results = {destination};
  i.sources = {which};
  append(std::move(i));
  return destination;
}

operand builder::lookup(const operand_syntax& syntax, type t) {
  operand found;
  switch (syntax.what) {
    case operand_syntax::kind::integer:
      found.what = operand::kind::immediate;
      found.value = cut_to(syntax.value, t);
      return found;
    case operand_syntax::kind::float32:
    case operand_syntax::kind::float64: {
      found.what = operand::kind::immediate;
      const bool is_single = syntax.what == operand_syntax::kind::float32;
      found.value = syntax.value;
      if (is_single && bits_of(t) == 64)
        found.value = std::bit_cast<std::uint64_t>(
            static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(syntax.value))));
      if (!is_single && bits_of(t) == 32)
        found.value = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(syntax.value)));
      return found;
    }
    case operand_syntax::kind::word: break;
    default: fail("an operand of this form does not belong here");
  }
  if (syntax.text == "WARP_SZ") {
    found.what = operand::kind::immediate;
    found.value = 32;
    return found;
  }
  const auto name = syntax.member.empty() ? context_.names.find(syntax.text) : std::nullopt;
  if (!name) return special_register(syntax);
  found.what = name->what;
  found.index = name->index;
  found.negated = syntax.negated;
  found.value = name->offset + syntax.value;
  if (found.is_register() && syntax.value != 0)
    fail(fmt::format("'{}' with an offset, which only an address has", syntax.text));
  return found;
}

operand builder::result(const operand_syntax& syntax) {
  if (syntax.is_sink()) return {};
  if (syntax.what != operand_syntax::kind::word) fail("the result is no register");
  const auto name = context_.names.find(syntax.text);
  if (!name || name->what != operand::kind::reg) fail(fmt::format("'{}' is no register", syntax.text));
  operand found;
  found.what = operand::kind::reg;
  found.index = name->index;
  return found;
}

std::vector<operand> builder::elements(const operand_syntax& syntax, type t, bool results) {
  std::vector<operand> found;
  if (syntax.what != operand_syntax::kind::vector) {
    found.push_back(results ? result(syntax) : lookup(syntax, t));
  } else {
    for (const operand_syntax& part : syntax.parts) found.push_back(results ? result(part) : lookup(part, t));
  }
  return found;
}

operand builder::temporary(type t) {
  operand o;
  o.what = operand::kind::reg;
  o.index = context_.new_register(t);
  return o;
}

instruction builder::make(opcode op, type t) const {
  instruction i;
  i.op = op;
  i.kind = form_of(op).kind;
  i.types[0] = t;
  i.guard = guard_;
  i.line = statement_.line;
  i.source_file = context_.source_file;
  i.source_line = context_.source_line;
  i.text_begin = statement_.text_begin;
  i.text_end = statement_.text_end;
  return i;
}

instruction builder::make() const {
  instruction i = make(statement_.form->op);
  if (statement_.types.size() > 4) fail("too many types");
  for (std::size_t n = 0; n < statement_.types.size(); ++n) i.types[n] = statement_.types[n];
  i.modifiers = statement_.modifiers;
  return i;
}

void builder::append(instruction i) {
  if (i.kind == kind::pure) {
    i.scalar = find_scalar(i);
    if (i.scalar == nullptr) unsupported("this combination of types and modifiers");
  }
  context_.function.code.push_back(std::move(i));
}

void builder::append(opcode op, type t, std::vector<operand> results, std::vector<operand> sources) {
  instruction i = make(op, t);
  i.results = std::move(results);
  i.sources = std::move(sources);
  append(std::move(i));
}

void builder::build() {
  if (statement_.guarded) {
    operand_syntax name;
    name.text = statement_.guard;
    guard_ = lookup(name, type::pred);
    guard_.negated = statement_.guard_negated;
    if (!guard_.is_register() || context_.function.registers[guard_.index] != type::pred)
      fail(fmt::format("the guard '{}' is no predicate", statement_.guard));
  }
  for (const type t : statement_.types)
    if (!statement_.form->takes(t)) unsupported(fmt::format(".{} of {}", name_of(t), statement_.form->mnemonic));
  switch (statement_.form->kind) {
    case kind::pure: return build_pure();
    case kind::load: return build_load();
    case kind::store: return build_store();
    case kind::atomic: return build_atomic();
    case kind::address_space: return build_address_space();
    case kind::copy_async: return build_copy_async();
    case kind::routine: return build_routine();
    case kind::texture: return build_texture();
    case kind::branch:
    case kind::branch_table: return build_branch();
    case kind::call: return build_call();
    case kind::warp: return build_warp();
    case kind::barrier: return build_barrier();
    case kind::matrix: return build_matrix();
    default: return append(make());  // no operands that matter
  }
}

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
  // Which type an operand has matters for immediates only: the second type where the shape says so, a float where it is
  // one.
  const std::string_view shape = statement_.form->operands;
  i.results = {result(written(0))};
  if (!i.results[0].is_register()) return;  // computes nothing that anybody sees
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
  // set.CmpOp.BoolOp d, a, b, c
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
  yes.value = i.types[0] == type::f32 ? 0x3f800000U : cut_to(~std::uint64_t{0}, i.types[0]);
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
    // p for the lower halves, q for the upper ones: set.f16x2 and its bits.
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
    bit.value = t == type::f16x2 ? 13 : 9;  // one is 0x3c00, or 0x3f80
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
  // The results may be among the operands, or the guard, so the guard and the comparison are kept first.
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
  // The carry flag is a predicate of the function. d may be one of the operands, so the flag is computed before it.
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
