// Statements that access memory.

#include "runtime/base/error.h"
#include "runtime/ptx/arithmetic/atomic.h"
#include "runtime/ptx/build/builder.h"
#include "runtime/ptx/program/routine.h"

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
  if (base.what != operand_syntax::kind::word) fail("an address must be a register, a variable or a number");
  const auto name = context_.names.find(base.text);
  if (!name) fail(fmt::format("'{}' is not declared", base.text));
  found.what = name->what;
  found.index = name->index;
  found.value = base.value + name->offset;
  return found;
}

unsigned builder::vector_length() const {
  return statement_.has(modifier::v2) ? 2 : statement_.has(modifier::v4) ? 4 : statement_.has(modifier::v8) ? 8 : 1;
}

void builder::build_load() {
  expect(2, 3);  // the third operand is a cache policy
  instruction i = make();
  if (statement_.types.size() != 1) fail("a load must have one type");
  i.vector = static_cast<std::uint8_t>(vector_length());
  i.results = elements(written(0), i.types[0], true);
  i.sources = {address(written(1))};
  if (i.results.size() != i.vector) fail(fmt::format("{} registers for a vector of {}", i.results.size(), i.vector));
  append(std::move(i));
}

void builder::build_store() {
  if (statement_.has(modifier::async)) return build_store_async();
  expect(2, 3);
  instruction i = make();
  if (statement_.types.size() != 1) fail("a store must have one type");
  i.vector = static_cast<std::uint8_t>(vector_length());
  const std::vector<operand> values = elements(written(1), i.types[0], false);
  if (values.size() != i.vector) fail(fmt::format("{} values for a vector of {}", values.size(), i.vector));
  i.sources = {address(written(0))};
  i.sources.insert(i.sources.end(), values.begin(), values.end());
  append(std::move(i));
}

// sources: the address, the barrier, the values
void builder::build_store_async() {
  expect(3, 3);
  instruction i = make();
  if (statement_.types.size() != 1 || !statement_.has(modifier::complete_bytes)) unsupported("this form of st.async");
  i.kind = kind::routine;
  i.vector = static_cast<std::uint8_t>(vector_length());
  const std::vector<operand> values = elements(written(1), i.types[0], false);
  if (values.size() != i.vector) fail(fmt::format("{} values for a vector of {}", values.size(), i.vector));
  i.sources = {address(written(0)), address(written(2))};
  i.sources.insert(i.sources.end(), values.begin(), values.end());
  if (i.sources.size() > most_routine_sources) unsupported("a vector of this length");
  append(std::move(i));
}

// The sources are the operands in the order of the text, except for the result.
void builder::build_routine() {
  instruction i = make();
  i.kind = kind::routine;
  if (statement_.operands.empty()) fail("operands are missing");
  const bool has_result = statement_.form->kind == kind::routine && written(0).what != operand_syntax::kind::address;
  if (has_result) i.results = {result(written(0))};
  for (std::size_t n = has_result ? 1 : 0; n < statement_.operands.size(); ++n)
    i.sources.push_back(written(n).what == operand_syntax::kind::address ? address(written(n))
                                                                         : lookup(written(n), type::u64));
  const std::size_t needed = [&]() -> std::size_t {
    if (i.op == opcode::cp && i.has(modifier::bulk))
      return i.has(modifier::bulk_group) ? 3 : i.has(modifier::multicast) ? 5 : 4;
    if (i.op == opcode::mapa) return 2;
    const bool with_operand = i.modifiers.one_of(modifier::init, modifier::expect_tx, modifier::complete_tx,
                                                 modifier::test_wait, modifier::try_wait) != modifier::count;
    return i.op == opcode::mbarrier && with_operand ? 2 : 1;
  }();
  if (i.sources.size() < needed) fail("an operand is missing");
  if (i.sources.size() > most_routine_sources) fail("too many operands");
  append(std::move(i));
}

// An atomic operation on a vector becomes one instruction for each element.
void builder::build_atomic() {
  const bool reduction = statement_.form->op == opcode::red;
  const bool swap = statement_.has(modifier::op_cas);
  const std::size_t first = reduction ? 0 : 1;
  expect(first + (swap ? 3 : 2), first + (swap ? 4 : 3));
  instruction i = make();
  if (statement_.types.size() != 1) fail("an atomic operation must have one type");
  i.atomic = find_atomic(i);
  if (i.atomic == nullptr) unsupported("this operation on this type");
  const operand at = address(written(first));
  const std::vector<operand> values = elements(written(first + 1), i.types[0], false);
  std::vector<operand> results;
  if (!reduction) results = elements(written(0), i.types[0], true);
  const unsigned length = vector_length();
  if (values.size() != length || (!reduction && results.size() != length) || (swap && length > 1))
    fail(fmt::format("{} values for a vector of {}", values.size(), length));
  if (length == 1) {
    if (!reduction) i.results = results;
    i.sources = {at, values[0]};
    if (swap) i.sources.push_back(lookup(written(first + 2), i.types[0]));
    return append(std::move(i));
  }
  // The result registers may also be operands, so the instructions first store the results in temporary registers.
  std::vector<operand> kept;
  for (unsigned n = 0; n < length; ++n) {
    instruction one = i;
    one.sources = {at, values[n]};
    one.sources[0].value += std::uint64_t{n} * bytes_of(i.types[0]);
    if (!reduction) one.results = {kept.emplace_back(temporary(i.types[0]))};
    append(std::move(one));
  }
  const type raw = bits_of(i.types[0]) == 16 ? type::b16 : bits_of(i.types[0]) == 32 ? type::b32 : type::b64;
  for (std::size_t n = 0; n < results.size(); ++n)
    if (results[n].is_register()) append(opcode::mov, raw, {results[n]}, {kept[n]});
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
  const bool arrives = statement_.has(modifier::mbarrier) && statement_.has(modifier::arrive);
  const bool tells = statement_.has(modifier::complete_bytes), groups = statement_.has(modifier::bulk_group);
  if (arrives || (statement_.has(modifier::bulk) && tells != groups)) return build_routine();
  if (i.modifiers.one_of(modifier::commit_group, modifier::wait_group, modifier::wait_all) != modifier::count) {
    // hpe executes asynchronous copies synchronously, so the interpreter and compiled code need not wait. The operand
    // is for the race finder, which must know for which groups the statement waits.
    i.kind = kind::nothing;
    if (!statement_.operands.empty()) i.sources = {lookup(written(0), type::u32)};
    return append(std::move(i));
  }
  if (statement_.has(modifier::bulk) && statement_.has(modifier::prefetch)) {
    i.kind = kind::nothing;
    return append(std::move(i));
  }
  if (statement_.has(modifier::bulk)) unsupported("this form of cp.async.bulk");
  expect(3, 5);
  i.sources = {address(written(0)), address(written(1)), lookup(written(2), type::u32)};
  const bool with_size = statement_.operands.size() > 3 && !statement_.has(modifier::cache_hint);
  if (statement_.operands.size() == 5 || with_size) i.sources.push_back(lookup(written(3), type::u32));
  append(std::move(i));
}

}  // namespace hpe::ptx
