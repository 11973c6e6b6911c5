// Converts statements to instructions: converts operands, and calls the function that builds the instruction
// (builder_*.cpp).

#include "runtime/ptx/build/builder.h"

#include <bit>

#include "runtime/base/error.h"
#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/program/special_register.h"

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
    default: fail("an operand of this form is not allowed here");
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
    fail(fmt::format("'{}' has an offset, but only an address may have one", syntax.text));
  return found;
}

operand builder::result(const operand_syntax& syntax) {
  if (syntax.is_sink()) return {};
  if (syntax.what != operand_syntax::kind::word) fail("the result is not a register");
  const auto name = context_.names.find(syntax.text);
  if (!name || name->what != operand::kind::reg) fail(fmt::format("'{}' is not a register", syntax.text));
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
  add_implied(i);
  return i;
}

// Adds the modifiers that PTX for sm_1x (2010 and before) may omit: the rounding, and .ftz, because f32 arithmetic of
// sm_1x has no subnormal numbers. ptxas adds the same modifiers when it compiles such PTX for newer architectures (PTX
// ISA, the notes on sm_1x).
void builder::add_implied(instruction& i) const {
  constexpr std::uint32_t first_with_rounding = 20;
  const std::uint32_t architecture = context_.program.architecture;
  const bool single = i.types[0] == type::f32;
  if (architecture == 0 || architecture >= first_with_rounding || (!single && i.types[0] != type::f64)) return;
  const modifier_set& possible = statement_.form->modifiers;
  using enum modifier;
  const bool is_rounded = i.modifiers.one_of(rn, rz, rm, rp, modifier::approx, full) != count;
  if (!is_rounded && i.op == opcode::mad) i.modifiers.add(rn);
  if (!is_rounded && possible.has(modifier::approx))
    i.modifiers.add(single || !possible.has(rn) ? modifier::approx : rn);
  if (single && possible.has(ftz)) i.modifiers.add(ftz);
}

void builder::append(instruction i) {
  if (i.kind == kind::pure && !set_scalar(i)) unsupported("this combination of types and modifiers");
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
      fail(fmt::format("the guard '{}' is not a predicate", statement_.guard));
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
    default: return append(make());  // kinds that ignore their operands
  }
}

}  // namespace hpe::ptx
