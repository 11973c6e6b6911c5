#include "runtime/spread/model/loop_counts.h"

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/ptx/arithmetic/scalar.h"

namespace hpe::spread {

using namespace ptx::analysis;

namespace {

/// Returns whether a predicate compares a value from memory with a constant for equality.
bool is_of_flag(const expressions& table, expression_id predicate) {
  for (const term& t : table.at(predicate)) {
    for (std::size_t n = 0; n < t.of.count; ++n) {
      const quantity& q = table.of(t.of.factors[n]);
      if (q.what != quantity::kind::node || q.made_by == nullptr || q.made_by->op != ptx::opcode::setp) continue;
      const ptx::modifier how = ptx::describe(*q.made_by).compare;
      if (how != ptx::modifier::eq && how != ptx::modifier::ne) continue;
      const auto is_data = [&](expression_id e) {
        const auto single = table.single_of(e);
        return single && table.of(*single).is_data;
      };
      const expression_id left = q.operands[0], right = q.operands[1];
      if ((is_data(left) && table.constant_of(right)) || (is_data(right) && table.constant_of(left))) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<double> shares_of_threads(const kernel_analysis& k) {
  std::vector<double> shares;
  const expressions& table = k.walk->table();
  for (std::uint32_t b = 0; b < k.walk->flow().blocks().size(); ++b) {
    double share = 1;
    if (k.walk->is_complete() && k.walk->flow().blocks()[b].is_reachable)
      for (const condition& c : k.walk->conditions_at(b))
        // The share is not multiplied for several flags, because the flags may have the same meaning.
        if (is_of_flag(table, c.predicate)) share = share_with_flag;
    shares.push_back(share);
  }
  return shares;
}

loop_counts::loop_counts(const kernel_analysis& k)
    : ways_out_(k.walk->flow().loops().size()), uniform_(ways_out_.size()) {
  kernel_walk& walk = *k.walk;
  const flow_graph& flow = walk.flow();
  for (std::uint32_t l = 0; l < ways_out_.size(); ++l) {
    order_.push_back(l);
    if (!walk.is_complete()) continue;  // the branches are unknown
    const flow_loop& loop = flow.loops()[l];
    bool uniform = true;
    for (const std::uint32_t b : loop.blocks) {
      const bool always = std::all_of(loop.latches.begin(), loop.latches.end(),
                                      [&](std::uint32_t latch) { return flow.dominates(b, latch); });
      const ptx::instruction& end = k.kernel->code[flow.blocks()[b].last - 1];
      if (!always || !walk.may_leave(l, b) || end.kind == ptx::kind::branch_table) continue;
      const auto decision = walk.decision_of(b);
      if (!decision) continue;
      // An instruction without targets ends the threads whose predicate holds.
      const bool target_inside = !end.targets.empty() && end.targets[0] < k.kernel->code.size() &&
                                 flow.blocks()[flow.block_at(end.targets[0])].loops.has(l);
      ways_out_[l].push_back(make_way_out(k, decision->of, !target_inside));
      loop_set own;
      own.add(l);
      const dependence d = k.known->of(decision->of, b);
      uniform &= !d.on_block() && !d.thread && !d.data && walk.table().varies(decision->of).without(own).empty();
    }
    uniform_[l] = uniform;
  }
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return flow.blocks()[flow.loops()[a].header].order < flow.blocks()[flow.loops()[b].header].order;
  });
}

loop_counts::way_out loop_counts::make_way_out(const kernel_analysis& k, expression_id predicate, bool leaves_if) {
  expressions& table = k.walk->table();
  const condition stays{predicate, !leaves_if, 0};
  way_out found{predicate, leaves_if, std::nullopt, comparisons_of(table, std::span(&stays, 1))};
  // 1 - p is the negation of the predicate p.
  const polynomial& p = table.at(predicate);
  const bool opposite =
      p.size() == 2 && p[0].of.is_one() && p[0].factor == 1 && p[1].factor == -1 && p[1].of.count == 1;
  std::optional<quantity_id> id = table.single_of(predicate);
  if (opposite) id = p[1].of.factors[0];
  if (!id) return found;
  const quantity& q = table.of(*id);
  if (q.what != quantity::kind::node || q.made_by == nullptr || q.made_by->op != ptx::opcode::setp) return found;
  const ptx::modifier how = ptx::describe(*q.made_by).compare;
  const bool leaves_if_equal =
      (how == ptx::modifier::eq && leaves_if != opposite) || (how == ptx::modifier::ne && leaves_if == opposite);
  if (leaves_if_equal) found.until_equal = {q.operands[0], q.operands[1]};
  return found;
}

// Returns whether a thread leaves the loop in the iteration of the evaluator's present counters; nothing if unknown.
std::optional<bool> loop_counts::leaves(std::uint32_t loop, evaluator& numbers) const {
  bool known = false;
  for (const way_out& w : ways_out_[loop]) {
    const auto predicate = numbers.of(w.predicate);
    if (!predicate) continue;
    known = true;
    if (((*predicate & 1) != 0) == w.leaves_if) return true;
  }
  if (!known) return std::nullopt;
  return false;
}

namespace {

/// `c` is a comparison that is true in all iterations of a loop except the last. Returns an upper bound of the loop's
/// counter in the last iteration. Returns nothing if `c` does not compare a register that changes by the same step in
/// each iteration with a register that does not change, or if the first register may overflow.
std::optional<std::int64_t> last_while(const comparison& c, std::uint32_t loop, bounds& all) {
  if (!all.assumptions_hold(c.assumes)) return std::nullopt;
  auto left = all.line_of(c.left, loop), right = all.line_of(c.right, loop);
  if (!left || !right || (left->step == 0) == (right->step == 0)) return std::nullopt;
  relation how = c.how;
  if (left->step == 0) {
    std::swap(left, right);
    constexpr relation mirrored[] = {relation::equal,   relation::unequal,
                                     relation::greater, relation::greater_or_equal,
                                     relation::less,    relation::less_or_equal};
    how = mirrored[static_cast<std::size_t>(how)];
  }
  const integer_range registers = range_of_bits(c.bits, c.is_signed), &start = left->start;
  integer_range bound = right->start;
  if (!start.lies_in(registers) || !bound.lies_in(registers)) return std::nullopt;
  const __int128 step = left->step;
  // An upper bound of the distance from the start to the next number for which the comparison is false.
  __int128 way = 0;
  switch (how) {
    case relation::unequal:
      if (step == 1 && start.high <= bound.low)
        way = bound.high - start.low;
      else if (step == -1 && start.low >= bound.high)
        way = start.high - bound.low;
      else
        return std::nullopt;
      break;
    case relation::less_or_equal: ++bound.high; [[fallthrough]];
    case relation::less:
      if (step <= 0 || bound.high - 1 + step > registers.high) return std::nullopt;
      way = bound.high - start.low;
      break;
    case relation::greater_or_equal: --bound.low; [[fallthrough]];
    case relation::greater:
      if (step >= 0 || bound.low + 1 + step < registers.low) return std::nullopt;
      way = start.high - bound.low;
      break;
    default: return std::nullopt;
  }
  const __int128 by = step < 0 ? -step : step, last = way <= 0 ? 0 : (way + by - 1) / by;
  constexpr __int128 most = std::int64_t{1} << 62;
  return last < most ? std::optional(static_cast<std::int64_t>(last)) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> loop_counts::most_of(std::uint32_t loop, bounds& all, evaluator& numbers,
                                                 std::int64_t& counter) const {
  std::optional<std::int64_t> most;
  for (const way_out& w : ways_out_[loop])
    for (const comparison& c : w.stays_while)
      if (const auto last = last_while(c, loop, all); last && (!most || *last < *most)) most = last;
  if (most || !is_uniform(loop)) return most;
  // If a thread that reaches iteration `last` leaves the loop there, the loop's counter never exceeds `last`.
  const std::int64_t last = last_of(loop, numbers, counter);
  counter = last;
  numbers.forget();
  return last >= 0 && leaves(loop, numbers) == true ? std::optional(last) : std::nullopt;
}

std::int64_t loop_counts::last_of(std::uint32_t loop, evaluator& numbers, std::int64_t& counter) const {
  const auto leaves_at = [&](std::int64_t k) {
    counter = k;
    numbers.forget();
    return leaves(loop, numbers);
  };
  constexpr std::int64_t most = std::int64_t{1} << 40;
  for (const way_out& w : ways_out_[loop]) {
    if (!w.until_equal) continue;
    const auto difference_at = [&](std::int64_t k) -> evaluator::number {
      counter = k;
      numbers.forget();
      const auto left = numbers.of(w.until_equal->left), right = numbers.of(w.until_equal->right);
      if (!left || !right) return std::nullopt;
      return *left - *right;
    };
    const auto first = difference_at(0), second = difference_at(1);
    if (!first || !second || *first == *second) return assumed;
    const __int128 last = -*first / (*second - *first);
    // A negative result means that the values are equal before the loop, so the loop does not run.
    return last > most ? assumed : std::max<std::int64_t>(static_cast<std::int64_t>(last), -1);
  }
  // Loops usually count up or down to a bound. Therefore bisection finds the first iteration that takes an exit, on the
  // assumption that all later iterations would also take the exit.
  std::int64_t inside = -1, outside = 0;
  for (;; outside = 2 * outside + 1) {
    const auto leaves = leaves_at(outside);
    if (!leaves || outside > most) return assumed;
    if (*leaves) break;
    inside = outside;
  }
  while (outside - inside > 1) {
    const std::int64_t middle = inside + (outside - inside) / 2;
    (leaves_at(middle).value_or(true) ? outside : inside) = middle;
  }
  return outside;
}

}  // namespace hpe::spread
