// If only one instruction writes a register, and this instruction has no guard, the register has one expression in all
// code that the instruction dominates. Each other register has a slot in the state at the entry and at the end of each
// block. Where paths with different values join, the value is a choice.
//
// At the header of a loop, the first walk represents each slot that the loop writes by a new quantity, a recurrence. If
// every iteration adds the same step to the slot, the next walk replaces the recurrence by initial value + step *
// counter. There is one walk for each nesting depth, from the outermost loops inward. Therefore steps contain only
// quantities of outer loops that earlier walks have resolved. The last walk proves by induction that every iteration
// adds the step. A slot for which the proof fails becomes a recurrence again.
//
// In expressions after a loop, the loop's counter means its final value. No expression there refers to an earlier value
// of the counter. A register with such a value would have to pass the header of an outer loop, and the header assigns a
// new quantity to the register.

#include "runtime/ptx/analysis/kernel_walk.h"

#include <algorithm>

namespace hpe::ptx::analysis {

namespace {

constexpr std::size_t most_state = 1 << 22;  // limits the number of values in the states of all blocks
constexpr std::size_t most_expressions = 1 << 18;
constexpr unsigned most_attempts = 4;

bool is_parameter_load(const instruction& i) {
  return i.has(modifier::param) || i.has(modifier::param_entry) || i.has(modifier::param_func);
}

// Returns whether the instruction is a ret or exit with a guard.
bool ends_some_threads(const instruction& i) {
  return i.guard.is_register() && (i.kind == kind::ret || i.kind == kind::exit);
}

// Returns whether the instruction reads memory that no thread of a kernel writes.
bool reads_constants(const instruction& i) { return i.has(modifier::constant) || is_parameter_load(i); }

}  // namespace

kernel_walk::kernel_walk(const function& f) : function_(f), flow_(f.code), rules_(f, expressions_, assumptions_) {
  if (f.code.empty()) return;
  find_slots();
  used_.resize(f.code.size());
  if (flow_.is_irregular() || flow_.blocks().size() * registers_.size() > most_state) {
    give_up();
    return;
  }
  find_changes();
  std::uint32_t depths = 0;
  for (const flow_loop& l : flow_.loops()) depths = std::max(depths, l.depth + 1);
  for (std::uint32_t depth = 0; depth < depths && complete_; ++depth) {
    complete_ = walk();
    settle(depth);
  }
  unsigned attempts = 0;
  do {
    complete_ = complete_ && ++attempts <= most_attempts && walk();
  } while (complete_ && !verified());
  if (!complete_) give_up();
}

void kernel_walk::give_up() {
  complete_ = false;
  for (const std::uint32_t b : flow_.order()) {
    for (std::uint32_t n = flow_.blocks()[b].first; n < flow_.blocks()[b].last; ++n) {
      const std::size_t sources = function_.code[n].sources.size();
      used_[n].sources.clear();
      for (std::uint32_t k = 0; k < sources; ++k) used_[n].sources.push_back(rules_.unknown(n, k, 64, {}));
      used_[n].guard = rules_.unknown(n, static_cast<std::uint32_t>(sources), 1, {});
    }
  }
}

void kernel_walk::find_slots() {
  const std::size_t registers = function_.registers.size();
  slot_of_.assign(registers, none);
  written_at_.assign(registers, none);
  single_.assign(registers, {});
  const auto give_slot = [&](std::uint32_t r) {
    if (slot_of_[r] != none) return;
    slot_of_[r] = static_cast<std::uint32_t>(registers_.size());
    registers_.push_back(r);
  };
  for (std::uint32_t n = 0; n < function_.code.size(); ++n) {
    for (const operand& o : function_.code[n].results) {
      if (!o.is_register()) continue;
      if (written_at_[o.index] != none || function_.code[n].guard.is_register()) give_slot(o.index);
      written_at_[o.index] = n;
    }
  }
  // In the next iteration of a loop, an instruction may read a register with one writer before the writer runs again.
  const auto give_slot_if_read_before = [&](const operand& o, std::uint32_t position) {
    if (!o.is_register() || written_at_[o.index] == none) return;
    const std::uint32_t from = flow_.block_at(written_at_[o.index]), to = flow_.block_at(position);
    if (!flow_.blocks()[from].is_reachable) return;
    if (from == to ? position <= written_at_[o.index] : !flow_.dominates(from, to)) give_slot(o.index);
  };
  for (const std::uint32_t b : flow_.order()) {
    for (std::uint32_t n = flow_.blocks()[b].first; n < flow_.blocks()[b].last; ++n) {
      give_slot_if_read_before(function_.code[n].guard, n);
      for (const operand& o : function_.code[n].sources) give_slot_if_read_before(o, n);
    }
  }
}

void kernel_walk::find_changes() {
  const std::vector<flow_loop>& loops = flow_.loops();
  at_entry_.resize(flow_.blocks().size());
  at_end_.resize(flow_.blocks().size());
  loop_registers_.resize(loops.size());
  for (std::uint32_t l = 0; l < loops.size(); ++l) {
    loop_registers_[l].resize(registers_.size());
    for (const std::uint32_t b : loops[l].blocks)
      for (std::uint32_t n = flow_.blocks()[b].first; n < flow_.blocks()[b].last; ++n)
        for (const operand& o : function_.code[n].results)
          if (o.is_register() && slot_of_[o.index] != none) loop_registers_[l][slot_of_[o.index]].is_changed = true;
    quantity counter;
    counter.what = quantity::kind::counter;
    counter.number = l;
    counter.values = {0, range_of_bits(63, false).high};
    counter.varies = flow_.blocks()[loops[l].header].loops;
    counters_.push_back(expressions_.intern(counter));
  }
}

bool kernel_walk::walk() {
  for (const std::uint32_t b : flow_.order()) {
    if (expressions_.size() > most_expressions) return false;
    state now = enter(b);
    at_entry_[b] = now;
    const flow_block& block = flow_.blocks()[b];
    for (std::uint32_t n = block.first; n < block.last; ++n) execute(n, now, block.loops);
    at_end_[b] = std::move(now);
  }
  return true;
}

kernel_walk::state kernel_walk::enter(std::uint32_t block) {
  const flow_block& b = flow_.blocks()[block];
  state now(registers_.size(), {0, 0, true});
  std::vector<std::uint32_t> from;
  for (const std::uint32_t p : b.predecessors)
    if (flow_.blocks()[p].order < b.order) from.push_back(p);
  if (from.empty() && !b.heads) return now;
  std::optional<std::vector<value>> decisions;
  for (std::uint32_t slot = 0; slot < now.size(); ++slot) {
    if (!from.empty()) now[slot] = merged(block, slot, from, decisions);
    if (b.heads && loop_registers_[*b.heads][slot].is_changed) now[slot] = at_header(*b.heads, slot, now[slot]);
  }
  return now;
}

value kernel_walk::at_header(std::uint32_t loop, std::uint32_t slot, const value& initial) {
  loop_register& r = loop_registers_[loop][slot];
  r.initial = initial;
  const unsigned bits = bits_of(function_.registers[registers_[slot]]);
  if (r.how == progress::affine && !initial.is_undefined) {
    const auto added = expressions_.times(r.step, expressions_.single(counters_[loop]));
    const auto sum = added ? expressions_.sum(initial.of, *added) : std::nullopt;
    if (sum) return {expressions_.reduced(*sum, bits), initial.assumes | r.assumes};
  }
  if (r.how == progress::affine) r.how = progress::recurrent;
  quantity q;
  q.what = quantity::kind::recurrence;
  q.number = flow_.blocks()[flow_.loops()[loop].header].first;
  q.bits = static_cast<std::uint8_t>(bits);
  q.values = range_of_bits(bits, bits > 1);
  q.varies = flow_.blocks()[flow_.loops()[loop].header].loops;
  return {expressions_.single(expressions_.intern(std::move(q), slot)), r.assumes};
}

value kernel_walk::merged(std::uint32_t block, std::uint32_t slot, const std::vector<std::uint32_t>& from,
                          std::optional<std::vector<value>>& decisions) {
  std::vector<value> alternatives;
  bool differ = false;
  for (const std::uint32_t p : from) {
    const value& v = at_end_[p][slot];
    if (v.is_undefined) continue;
    differ |= !alternatives.empty() && v.of != alternatives[0].of;
    alternatives.push_back(v);
  }
  if (alternatives.empty()) return {0, 0, true};
  if (differ && !decisions) decisions = deciding(block);
  if (differ)
    return rules_.choose(flow_.blocks()[block].first, slot + 1, bits_of(function_.registers[registers_[slot]]),
                         alternatives, *decisions, flow_.blocks()[block].loops);
  for (const value& v : alternatives) alternatives[0].assumes |= v.assumes;
  return alternatives[0];
}

// Returns the values that decide through which predecessor a thread reaches the block. These are the conditions of the
// branches between the block's dominator and the block.
std::vector<value> kernel_walk::deciding(std::uint32_t block) const {
  std::vector<value> all;
  std::vector<bool> seen(flow_.blocks().size());
  std::vector<std::uint32_t> rest = flow_.blocks()[block].predecessors;
  seen[block] = true;
  while (!rest.empty()) {
    const std::uint32_t b = rest.back();
    rest.pop_back();
    if (seen[b]) continue;
    seen[b] = true;
    if (const std::optional<value> decision = decision_of(b)) {
      if (std::none_of(all.begin(), all.end(), [&](const value& v) { return v.of == decision->of; }))
        all.push_back(*decision);
    }
    if (b == flow_.blocks()[block].dominator) continue;
    rest.insert(rest.end(), flow_.blocks()[b].predecessors.begin(), flow_.blocks()[b].predecessors.end());
  }
  return all;
}

// Returns the branches of a loop that decide which of the goals a thread reaches first. `goals` has an element for each
// block, and a last element that is true if the exits of the loop are also a goal.
std::vector<kernel_walk::decision> kernel_walk::forks(std::uint32_t loop, const std::vector<bool>& goals) const {
  const auto outside = static_cast<std::uint32_t>(flow_.blocks().size());
  constexpr std::uint32_t several = none - 1;
  std::vector<std::uint32_t> first(outside,
                                   none);  // by block: the first goal that a thread reaches from the end of the block
  const auto after = [&](std::uint32_t block) {
    std::uint32_t found = first[block];
    const auto include = [&found](std::uint32_t goal) {
      if (goal != none) found = found == none || found == goal ? goal : several;
    };
    for (const std::uint32_t s : flow_.blocks()[block].successors)
      if (flow_.blocks()[s].loops.has(loop)) include(goals[s] ? s : first[s]);
    if (goals[outside] && may_leave(loop, block)) include(outside);
    return found;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto b = flow_.order().rbegin(); b != flow_.order().rend(); ++b) {
      if (!flow_.blocks()[*b].loops.has(loop)) continue;
      const std::uint32_t found = after(*b);
      changed |= found != first[*b];
      first[*b] = found;
    }
  }
  std::vector<decision> all;
  for (const std::uint32_t b : flow_.loops()[loop].blocks) {
    if (first[b] != several) continue;
    if (const std::optional<value> what = decision_of(b)) all.push_back({b, *what});
  }
  return all;
}

std::vector<kernel_walk::decision> kernel_walk::endings_of(std::uint32_t loop) const {
  std::vector<bool> goals(flow_.blocks().size() + 1);
  for (const std::uint32_t b : flow_.loops()[loop].blocks) goals[b] = may_leave(loop, b);
  goals[flow_.loops()[loop].header] = true;
  goals.back() = true;
  return forks(loop, goals);
}

std::vector<kernel_walk::decision> kernel_walk::decisions_before(std::uint32_t loop, std::uint32_t block) const {
  if (block == flow_.loops()[loop].header) return {};
  std::vector<bool> goals(flow_.blocks().size() + 1);
  goals[block] = true;
  goals[flow_.loops()[loop].header] = true;
  goals.back() = true;
  return forks(loop, goals);
}

// Returns the branches that decide through which latch an iteration returns to the header.
std::vector<kernel_walk::decision> kernel_walk::latch_choices(std::uint32_t loop) const {
  if (flow_.loops()[loop].latches.size() < 2) return {};
  std::vector<bool> goals(flow_.blocks().size() + 1);
  for (const std::uint32_t latch : flow_.loops()[loop].latches) goals[latch] = true;
  goals[flow_.loops()[loop].header] = true;
  return forks(loop, goals);
}

bool kernel_walk::may_leave(std::uint32_t loop, std::uint32_t block) const {
  const flow_block& b = flow_.blocks()[block];
  return ends_some_threads(function_.code[b.last - 1]) ||
         std::any_of(b.successors.begin(), b.successors.end(),
                     [&](std::uint32_t s) { return !flow_.blocks()[s].loops.has(loop); });
}

std::optional<value> kernel_walk::decision_of(std::uint32_t block) const {
  const flow_block& b = flow_.blocks()[block];
  const instruction& end = function_.code[b.last - 1];
  if (b.successors.size() < 2 && !ends_some_threads(end)) return std::nullopt;
  if (end.kind == kind::branch_table) return used_[b.last - 1].sources.empty() ? value{} : used_[b.last - 1].sources[0];
  return used_[b.last - 1].guard;
}

value kernel_walk::read(const operand& o, unsigned bits, const state& now, std::uint32_t position) {
  if (!o.is_register()) return rules_.of_operand(o, bits);
  value v;
  if (slot_of_[o.index] != none) {
    v = now[slot_of_[o.index]];
  } else if (const std::uint32_t writer = written_at_[o.index]; writer != none) {
    const std::uint32_t from = flow_.block_at(writer), to = flow_.block_at(position);
    if (from == to ? writer < position : flow_.blocks()[from].is_reachable && flow_.dominates(from, to)) {
      v = single_[o.index];
    } else {
      v = rules_.unknown(position, o.index, bits_of(function_.registers[o.index]), flow_.blocks()[to].loops);
    }
  }
  if (o.negated) {
    const auto other = expressions_.sum(expressions_.constant(1), v.of, -1);
    v.of = other.value_or(v.of);
  }
  return v;
}

void kernel_walk::load(const instruction& i, std::uint32_t position, const std::vector<value>& sources, loop_set inside,
                       std::vector<value>& results) {
  const auto parameter = function_.is_kernel && i.op == opcode::ld
                             ? rules_.parameter_at(i, rules_.address(i.sources[0], sources[0]))
                             : std::nullopt;
  const bool is_constant = reads_constants(i) && function_.is_kernel && i.sources[0].what != operand::kind::scratch;
  for (unsigned n = 0; n < i.results.size(); ++n) {
    if (!i.results[n].is_register()) {
      results.emplace_back();
    } else if (parameter) {
      results.push_back(rules_.parameter(i, *parameter, n));
    } else if (is_constant) {
      results.push_back(rules_.opaque(i, position, n, sources, expressions_.varies(sources[0].of), false));
    } else {
      results.push_back(rules_.opaque(i, position, n, sources, inside, true));
    }
  }
}

void kernel_walk::execute(std::uint32_t position, state& now, loop_set inside) {
  const instruction& i = function_.code[position];
  used_operands& used = used_[position];
  used.sources.clear();
  used.guard = i.guard.is_register() ? read(i.guard, 1, now, position) : value{};
  for (std::size_t n = 0; n < i.sources.size(); ++n)
    used.sources.push_back(i.kind == kind::special ? value{}
                                                   : read(i.sources[n], rules_.bits_of_operand(i, n), now, position));
  if (i.results.empty()) return;
  std::vector<value> results;
  switch (i.kind) {
    case kind::pure:
    case kind::address_space:
      if (i.results[0].is_register()) results = {rules_.compute(i, position, used.sources, inside)};
      break;
    case kind::special:
      if (i.results[0].is_register()) results = {rules_.special(i, position, inside)};
      break;
    case kind::load: load(i, position, used.sources, inside, results); break;
    default:
      for (unsigned n = 0; n < i.results.size(); ++n)
        results.push_back(rules_.opaque(i, position, n, used.sources, inside, true));
  }
  for (std::size_t n = 0; n < results.size(); ++n)
    if (i.results[n].is_register()) assign(i.results[n], position, results[n], used.guard, now, inside);
}

void kernel_walk::assign(const operand& to, std::uint32_t position, const value& v, const value& guard, state& now,
                         loop_set inside) {
  const instruction& i = function_.code[position];
  if (slot_of_[to.index] == none) {
    single_[to.index] = v;
    return;
  }
  value& place = now[slot_of_[to.index]];
  if (!i.guard.is_register() || place.is_undefined || place.of == v.of) {
    const assumption_set kept = i.guard.is_register() && !place.is_undefined ? place.assumes : 0;
    place = v;
    place.assumes |= kept;
    return;
  }
  place = rules_.choose(position, 0, bits_of(function_.registers[to.index]), {v, place}, {guard}, inside);
}

void kernel_walk::settle(std::uint32_t depth) {
  for (std::uint32_t l = 0; l < flow_.loops().size(); ++l) {
    const flow_loop& loop = flow_.loops()[l];
    if (loop.depth != depth) continue;
    for (std::uint32_t slot = 0; slot < registers_.size(); ++slot) {
      loop_register& r = loop_registers_[l][slot];
      if (!r.is_changed) continue;
      const type t = function_.registers[registers_[slot]];
      r.how = progress::recurrent;
      if (bits_of(t) < 2 || is_float(t)) continue;
      const value& header = at_entry_[loop.header][slot];
      std::optional<expression_id> step;
      bool is_affine = true;
      r.assumes = 0;
      for (const std::uint32_t latch : loop.latches) {
        const value& end = at_end_[latch][slot];
        const auto difference = expressions_.sum(end.of, header.of, -1);
        is_affine &= difference && !end.is_undefined;
        if (!is_affine) break;
        const expression_id one = expressions_.reduced(*difference, bits_of(t));
        is_affine &= (!step || *step == one) && !expressions_.varies(one).has(l);
        step = one;
        r.assumes |= end.assumes;
      }
      if (!is_affine || !step) continue;
      r.how = progress::affine;
      r.step = *step;
    }
  }
}

// Returns whether every iteration adds the slot's step to each affine slot. Also sets the dependences of recurrences.
bool kernel_walk::verified() {
  bool all = true;
  for (std::uint32_t l = 0; l < flow_.loops().size(); ++l) {
    const flow_loop& loop = flow_.loops()[l];
    const std::vector<decision> choices = latch_choices(l);
    for (std::uint32_t slot = 0; slot < registers_.size(); ++slot) {
      loop_register& r = loop_registers_[l][slot];
      if (!r.is_changed) continue;
      const unsigned bits = bits_of(function_.registers[registers_[slot]]);
      const value& header = at_entry_[loop.header][slot];
      std::vector<expression_id> depends{r.initial.of};
      assumption_set assumes = r.initial.assumes;
      for (const std::uint32_t latch : loop.latches) {
        const value& end = at_end_[latch][slot];
        depends.push_back(end.of);
        assumes |= end.assumes;
        if (r.how != progress::affine) continue;
        const auto next = expressions_.sum(header.of, r.step);
        if (next && !end.is_undefined && expressions_.reduced(*next, bits) == expressions_.reduced(end.of, bits) &&
            (end.assumes & ~header.assumes) == 0)
          continue;
        r.how = progress::recurrent;
        all = false;
      }
      if (r.how == progress::affine) continue;
      for (const decision& d : choices) {
        depends.push_back(d.what.of);
        assumes |= d.what.assumes;
      }
      if (const auto q = expressions_.single_of(header.of); q && expressions_.of(*q).what == quantity::kind::recurrence)
        expressions_.set_dependence(*q, std::move(depends), assumes);
    }
  }
  return all;
}

value kernel_walk::address_of(std::uint32_t position, std::size_t n) {
  value v = used_[position].sources[n];
  const operand& o = function_.code[position].sources[n];
  if (!o.is_register() || o.value == 0) return v;
  const auto sum = expressions_.sum(v.of, expressions_.constant(static_cast<std::int64_t>(o.value)));
  return sum ? value{*sum, v.assumes}
             : rules_.unknown(position, ~0U, 64, flow_.blocks()[flow_.block_at(position)].loops);
}

std::vector<condition> kernel_walk::conditions_at(std::uint32_t block) const {
  std::vector<condition> all;
  constexpr std::size_t most = 32;
  for (std::uint32_t b = block; b != 0 && all.size() < most; b = flow_.blocks()[b].dominator) {
    const flow_block& here = flow_.blocks()[b];
    if (here.predecessors.size() != 1) continue;
    const flow_block& above = flow_.blocks()[here.predecessors[0]];
    const instruction& branch = function_.code[above.last - 1];
    if (!branch.guard.is_register() || branch.kind == kind::branch_table) continue;
    const bool leaves = branch.targets.empty();  // a ret or exit, which ends the threads whose predicate holds
    if (!leaves && above.successors.size() != 2) continue;
    const value& guard = used_[above.last - 1].guard;
    const bool is_taken =
        !leaves && branch.targets[0] < function_.code.size() && flow_.block_at(branch.targets[0]) == b;
    all.push_back({guard.of, is_taken, guard.assumes});
  }
  return all;
}

std::optional<condition> kernel_walk::guard_of(std::uint32_t position) const {
  if (!function_.code[position].guard.is_register()) return std::nullopt;
  return condition{used_[position].guard.of, true, used_[position].guard.assumes};
}

}  // namespace hpe::ptx::analysis
