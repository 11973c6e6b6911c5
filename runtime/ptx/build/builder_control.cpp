// Statements of control flow, and meetings of threads (call_graph.h): shuffles, votes and barriers.

#include <algorithm>
#include <span>

#include "runtime/base/error.h"
#include "runtime/ptx/build/builder.h"
#include "runtime/ptx/program/call_graph.h"

namespace hpe::ptx {

void builder::build_branch() {
  instruction i = make();
  if (statement_.form->op == opcode::bra) {
    expect(1, 1);
    i.targets = {context_.label(written(0).text)};
  } else {
    expect(2, 2);
    i.sources = {lookup(written(0), type::u32)};
    const auto table = context_.branch_tables.find(written(1).text);
    if (table == context_.branch_tables.end())
      fail(fmt::format("'{}' is not a list of .branchtargets", written(1).text));
    constexpr std::size_t most = 1 << 20;
    context_.table_targets += table->second.size();
    if (context_.table_targets > most) fail(fmt::format("more than {} branch targets in a function", most));
    i.targets = table->second;
  }
  append(std::move(i));
}

// Returns the place in scratch memory of an argument or result of a call. For a register or a number, allocates the
// place, because callees read arguments from memory. For an argument, appends the store. For a result, adds the load to
// `after`, to be appended after the call.
argument builder::call_argument(const operand_syntax& syntax, bool is_result, std::vector<instruction>& after) {
  if (syntax.what == operand_syntax::kind::word && !syntax.is_sink())
    if (const auto name = context_.names.find(syntax.text); name && name->what == operand::kind::scratch)
      return {name->offset, name->size};
  operand value = is_result ? result(syntax) : lookup(syntax, type::b64);
  const type t = value.is_register() ? context_.function.registers[value.index] : type::b64;
  operand place;
  place.what = operand::kind::scratch;
  place.value = context_.new_scratch(bytes_of(t));
  instruction transfer = make(is_result ? opcode::ld : opcode::st, t);
  transfer.modifiers.add(modifier::param);
  if (is_result) {
    transfer.results = {value};
    transfer.sources = {place};
    if (value.is_register()) after.push_back(std::move(transfer));
  } else {
    transfer.sources = {place, value};
    append(std::move(transfer));
  }
  return {static_cast<std::uint32_t>(place.value), bytes_of(t)};
}

void builder::build_call() {
  instruction i = make();
  std::vector<instruction> after;
  std::size_t n = 0;
  if (written(0).what == operand_syntax::kind::list) {
    for (const operand_syntax& r : written(0).parts) i.returns.push_back(call_argument(r, true, after));
    ++n;
  }
  const operand_syntax& target = written(n++);
  if (n < statement_.operands.size() && statement_.operands[n].what == operand_syntax::kind::list)
    for (const operand_syntax& a : statement_.operands[n].parts) i.arguments.push_back(call_argument(a, false, after));
  const operand callee = lookup(target, type::u64);
  if (callee.what == operand::kind::function) {
    i.callee = callee.index;
  } else if (callee.is_register()) {
    i.sources = {callee};
  } else {
    fail(fmt::format("'{}' is not a function", target.text));
  }
  append(std::move(i));
  for (instruction& transfer : after) append(std::move(transfer));
}

void builder::build_warp() {
  instruction i = make();
  if (statement_.form->op != opcode::activemask && !statement_.has(modifier::sync))
    unsupported("the form without .sync");
  // results: the register; for d|p, also the predicate
  const operand_syntax& d = written(0);
  i.results = {result(d)};
  if (!d.second.empty()) i.results.push_back(result(d.second[0]));
  const std::size_t expected = [&]() -> std::size_t {
    switch (statement_.form->op) {
      case opcode::shfl: return 5;
      case opcode::activemask: return 1;
      case opcode::elect: return 2;
      default: return 3;
    }
  }();
  expect(expected, expected);
  const bool of_predicate = statement_.form->op == opcode::vote;
  for (std::size_t n = 1; n < expected; ++n)
    i.sources.push_back(lookup(written(n), of_predicate && n == 1 ? type::pred : n == 1 ? i.types[0] : type::b32));
  append(std::move(i));
}

// sources: the barrier's number (or the mask of bar.warp); the number of threads or an empty operand; the predicate of
// bar.red or an empty operand
void builder::build_barrier() {
  instruction i = make();
  std::size_t n = 0;
  if (statement_.has(modifier::warp)) {
    expect(1, 1);
    i.kind = kind::warp;
    i.sources = {lookup(written(0), type::b32)};
    return append(std::move(i));
  }
  if (statement_.has(modifier::cluster)) {
    expect(0, 0);
    if (statement_.has(modifier::arrive) == statement_.has(modifier::wait)) fail("one of .arrive and .wait is needed");
    return append(std::move(i));
  }
  const bool reduces = statement_.has(modifier::red);
  if (!reduces && !statement_.has(modifier::sync) && !statement_.has(modifier::arrive))
    fail("one of .sync, .arrive and .red is needed");
  if (reduces) i.results = {result(written(n++))};
  i.sources = {lookup(written(n++), type::b32)};
  const std::size_t rest = statement_.operands.size() - n;
  if (rest > (reduces ? 2U : 1U)) fail("too many operands");
  i.sources.push_back(rest > (reduces ? 1U : 0U) ? lookup(written(n++), type::b32) : operand{});
  i.sources.push_back(reduces ? lookup(written(n), type::pred) : operand{});
  if (statement_.has(modifier::arrive) && i.sources[1].what == operand::kind::none)
    fail(".arrive needs the number of threads");
  append(std::move(i));
}

void resolve_labels(function_context& context) {
  std::unordered_map<std::uint32_t, std::string_view> names;
  for (const auto& [name, number] : context.label_numbers) names[number] = name;
  for (instruction& i : context.function.code) {
    for (std::uint32_t& target : i.targets) {
      const std::uint32_t position = context.label_positions[target];
      HPE_REQUIRE(position != function_context::unplaced, HPE_ERROR_INVALID_ARGUMENT,
                  "PTX line {}: '{}' in {}: the label {} is not defined", i.line,
                  context.program.text_of(context.function, i), context.function.name, names[target]);
      target = position;
    }
  }
}

namespace {

std::vector<bool> read_registers(const function& f) {
  std::vector<bool> read(f.registers.size());
  for (const instruction& i : f.code) {
    if (i.guard.is_register()) read[i.guard.index] = true;
    for (const operand& o : i.sources)
      if (o.is_register()) read[o.index] = true;
  }
  return read;
}

// Returns whether a loop with this instruction may wait for another thread. A loop does not wait with an atomic
// operation whose result it does not use.
bool waits_for_others(const instruction& i, const std::vector<bool>& read) {
  if (i.kind == kind::atomic) return !i.results.empty() && i.results[0].is_register() && read[i.results[0].index];
  if (i.op == opcode::mbarrier) return i.has(modifier::test_wait) || i.has(modifier::try_wait);
  return i.kind == kind::load && i.op == opcode::ld && i.is_strong();
}

// Returns whether the loop of the instructions first <= n < last contains an ld.cg whose address the loop only loads
// from memory or does not change. Such a loop may poll one address. Other loops with ld.cg read arrays, and a pause
// would slow them down.
bool polls_past_cache(const std::vector<instruction>& code, std::uint32_t first, std::uint32_t last) {
  const auto range = std::span(code).subspan(first, last - first);
  const auto computes = [](const instruction& i, std::uint32_t r) {
    return i.kind != kind::load && i.kind != kind::address_space &&
           std::ranges::any_of(i.results, [r](const operand& o) { return o.is_register() && o.index == r; });
  };
  return std::ranges::any_of(range, [&](const instruction& load) {
    if (load.kind != kind::load || !load.has(modifier::cg)) return false;
    const operand& address = load.sources[0];
    return !address.is_register() ||
           std::ranges::none_of(range, [&](const instruction& i) { return computes(i, address.index); });
  });
}

instruction pause_before(const instruction& jump) {
  instruction pause;
  pause.op = opcode::pause;
  pause.kind = kind::pause;
  pause.line = jump.line;
  return pause;
}

// Returns, by function, whether the function or a callee contains an instruction for which waits_for_others is true.
std::vector<bool> polling_functions(const program& p) {
  std::vector<bool> polls(p.functions.size());
  std::vector<std::vector<std::uint32_t>> callers(p.functions.size());
  std::vector<std::uint32_t> open;
  for (std::uint32_t f = 0; f < p.functions.size(); ++f) {
    const std::vector<bool> read = read_registers(*p.functions[f]);
    for (const instruction& i : p.functions[f]->code) {
      if (i.kind == kind::call && i.sources.empty()) callers[i.callee].push_back(f);
      if (polls[f] || !waits_for_others(i, read)) continue;
      polls[f] = true;
      open.push_back(f);
    }
  }
  while (!open.empty()) {
    const std::uint32_t f = open.back();
    open.pop_back();
    for (const std::uint32_t caller : callers[f]) {
      if (polls[caller]) continue;
      polls[caller] = true;
      open.push_back(caller);
    }
  }
  return polls;
}

}  // namespace

void insert_pauses(function_context& context) {
  std::vector<instruction>& code = context.function.code;
  const std::vector<bool> read = read_registers(context.function);
  // Counts all instructions before the first insertion, and inserts from the end of the code to its beginning, so that
  // the counts stay valid.
  const auto count_of =
      [&](const auto& holds) {  // returns the number of instructions with this property before each position
        std::vector<std::uint32_t> until(code.size() + 1, 0);
        for (std::size_t n = 0; n < code.size(); ++n) until[n + 1] = until[n] + (holds(code[n]) ? 1 : 0);
        return until;
      };
  const auto waiting_until = count_of([&](const instruction& i) { return waits_for_others(i, read); });
  const auto barriers_until = count_of([](const instruction& i) {
    return (i.op == opcode::bar && i.kind == kind::warp) || i.kind == kind::barrier ||
           (i.kind == kind::fence && !i.has(modifier::proxy) && !i.has(modifier::mbarrier_init));
  });
  const auto loads_until =
      count_of([](const instruction& i) { return i.kind == kind::load && i.sources[0].what != operand::kind::formal; });
  const auto writes_until = count_of(
      [](const instruction& i) { return i.kind == kind::store || i.kind == kind::atomic || i.op == opcode::cp; });
  const auto past_cache_until =
      count_of([](const instruction& i) { return i.kind == kind::load && i.has(modifier::cg); });
  for (std::size_t n = code.size(); n-- > 0;) {
    if (code[n].kind != kind::branch && code[n].kind != kind::branch_table) continue;
    const bool back = std::any_of(code[n].targets.begin(), code[n].targets.end(), [&](std::uint32_t target) {
      const std::uint32_t position = context.label_positions[target];
      const auto has = [&](const std::vector<std::uint32_t>& until) { return until[n] != until[position]; };
      return position <= n &&
             (has(waiting_until) || (has(barriers_until) && has(loads_until) && !has(writes_until)) ||
              (has(past_cache_until) && polls_past_cache(code, position, static_cast<std::uint32_t>(n))));
    });
    if (!back) continue;
    code.insert(code.begin() + static_cast<std::ptrdiff_t>(n), pause_before(code[n]));
    for (std::uint32_t& position : context.label_positions)
      if (position != function_context::unplaced && position > n) ++position;
  }
}

void insert_pauses_at_calls(program& p) {
  const std::vector<bool> polls = polling_functions(p);
  if (std::none_of(polls.begin(), polls.end(), [](bool b) { return b; })) return;
  bool any_pointer_polls = false;
  const call_graph calls(p);
  for (const std::uint32_t f : calls.targets_of_pointers()) any_pointer_polls |= polls[f];
  for (const auto& f : p.functions) {
    std::vector<instruction>& code = f->code;
    std::vector<std::uint32_t> calls_until(code.size() + 1);
    for (std::size_t n = 0; n < code.size(); ++n) {
      const bool is_polling = code[n].kind == kind::call &&
                              (code[n].sources.empty() ? static_cast<bool>(polls[code[n].callee]) : any_pointer_polls);
      calls_until[n + 1] = calls_until[n] + (is_polling ? 1 : 0);
    }
    if (calls_until.back() == 0) continue;
    std::vector<instruction> with_pauses;
    std::vector<std::uint32_t> positions(code.size() + 1);
    for (std::size_t n = 0; n < code.size(); ++n) {
      positions[n] = static_cast<std::uint32_t>(with_pauses.size());
      const bool is_back = std::any_of(code[n].targets.begin(), code[n].targets.end(), [&](std::uint32_t target) {
        return target <= n && calls_until[n] != calls_until[target];
      });
      if (is_back && (n == 0 || with_pauses.back().kind != kind::pause)) with_pauses.push_back(pause_before(code[n]));
      with_pauses.push_back(std::move(code[n]));
    }
    positions[code.size()] = static_cast<std::uint32_t>(with_pauses.size());
    for (instruction& i : with_pauses)
      for (std::uint32_t& target : i.targets) target = positions[target];
    code = std::move(with_pauses);
  }
}

}  // namespace hpe::ptx
