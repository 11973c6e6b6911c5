// Statements that touch memory.

#include "runtime/base/error.h"
#include "runtime/ptx/atomic.h"
#include "runtime/ptx/builder.h"

namespace hpe::ptx {

operand builder::address(const operand_syntax& syntax) {
  if (syntax.what != operand_syntax::kind::address) fail("an address in brackets is missing");
  const operand_syntax& base = syntax.parts[0];
  operand found;
  if (base.what == operand_syntax::kind::integer) {
    found.what = operand::kind::immediate;
    found.value = base.value;
    return found;
  }
  if (base.what != operand_syntax::kind::word) fail("an address is a register, a variable or a number");
  const auto name = context_.names.find(base.text);
  if (!name) fail(fmt::format("'{}' is not declared", base.text));
  found.what = name->what;
  found.index = name->index;
  found.value = base.value + name->offset;
  return found;
}

namespace {

unsigned vector_length(const statement& s) {
  return s.has(modifier::v2) ? 2 : s.has(modifier::v4) ? 4 : s.has(modifier::v8) ? 8 : 1;
}

}  // namespace

void builder::build_load() {
  expect(2, 3);  // the third is a cache policy
  instruction i = make();
  if (statement_.types.size() != 1) fail("a load has one type");
  i.vector = static_cast<std::uint8_t>(vector_length(statement_));
  i.results = elements(written(0), i.types[0], true);
  i.sources = {address(written(1))};
  if (i.results.size() != i.vector) fail(fmt::format("{} registers for a vector of {}", i.results.size(), i.vector));
  append(std::move(i));
}

void builder::build_store() {
  expect(2, 3);
  instruction i = make();
  if (statement_.types.size() != 1) fail("a store has one type");
  i.vector = static_cast<std::uint8_t>(vector_length(statement_));
  const std::vector<operand> values = elements(written(1), i.types[0], false);
  if (values.size() != i.vector) fail(fmt::format("{} values for a vector of {}", values.size(), i.vector));
  i.sources = {address(written(0))};
  i.sources.insert(i.sources.end(), values.begin(), values.end());
  append(std::move(i));
}

void builder::build_atomic() {
  const bool reduction = statement_.form->op == opcode::red;
  const bool swap = statement_.has(modifier::op_cas);
  const std::size_t first = reduction ? 0 : 1;
  expect(first + (swap ? 3 : 2), first + (swap ? 4 : 3));
  instruction i = make();
  if (statement_.types.size() != 1) fail("an atomic operation has one type");
  if (!reduction) i.results = {result(written(0))};
  i.sources = {address(written(first)), lookup(written(first + 1), i.types[0])};
  if (swap) i.sources.push_back(lookup(written(first + 2), i.types[0]));
  i.atomic = find_atomic(i);
  if (i.atomic == nullptr) unsupported("this operation on this type");
  append(std::move(i));
}

void builder::build_address_space() {
  expect(2, 2);
  instruction i = make();
  i.results = {result(written(0))};
  i.sources = {lookup(written(1), type::u64)};
  append(std::move(i));
}

void builder::build_copy_async() {
  instruction i = make();
  if (!statement_.has(modifier::async)) unsupported("this form of cp");
  if (i.modifiers.one_of(modifier::commit_group, modifier::wait_group, modifier::wait_all) != modifier::count) {
    // Copies are done when they are started, so there is nothing to wait for.
    i.kind = kind::nothing;
    return append(std::move(i));
  }
  expect(3, 5);
  i.sources = {address(written(0)), address(written(1)), lookup(written(2), type::u32)};
  const bool with_size = statement_.operands.size() > 3 && !statement_.has(modifier::cache_hint);
  if (statement_.operands.size() == 5 || with_size) i.sources.push_back(lookup(written(3), type::u32));
  append(std::move(i));
}

void builder::build_texture() {
  expect(2, 2);
  instruction i = make();
  i.results = elements(written(0), i.types[0], true);
  const operand_syntax& where = written(1);
  if (where.what != operand_syntax::kind::address || where.parts.size() != 2)
    fail("a texture and its coordinates are missing");
  if (i.results.size() != 4) unsupported("another vector than one of four");
  if (statement_.types.size() != 2) fail("a texture access has two types");
  i.sources = {lookup(where.parts[0], type::u64)};
  for (const operand& coordinate : elements(where.parts[1], i.types[1], false)) i.sources.push_back(coordinate);
  const std::size_t dimensions = statement_.has(modifier::d1) ? 1 : statement_.has(modifier::d2) ? 2 : 0;
  if (dimensions == 0) unsupported("this geometry");
  if (i.sources.size() < 1 + dimensions) fail("a coordinate is missing");
  append(std::move(i));
}

}  // namespace hpe::ptx
