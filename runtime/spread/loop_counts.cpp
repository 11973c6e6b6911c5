#include "runtime/spread/loop_counts.h"

#include <algorithm>

#include "runtime/ptx/arithmetic/scalar.h"

namespace hpe::spread {

using namespace ptx::analysis;

namespace {

/// Whether a predicate compares a value in memory with a constant, for equality.
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
        if (is_of_flag(table, c.predicate)) share = share_with_flag;  // several flags may say the same
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
    const flow_loop& loop = flow.loops()[l];
    bool uniform = true;
    for (const std::uint32_t b : loop.blocks) {
      const bool always = std::all_of(loop.latches.begin(), loop.latches.end(),
                                      [&](std::uint32_t latch) { return flow.dominates(b, latch); });
      const ptx::instruction& end = k.kernel->code[flow.blocks()[b].last - 1];
      if (!always || !walk.may_leave(l, b) || end.kind == ptx::kind::branch_table) continue;
      const auto decision = walk.decision_of(b);
      if (!decision) continue;
      // Without targets the instruction ends the threads whose predicate holds.
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
  way_out found{predicate, leaves_if, std::nullopt};
  const expressions& table = k.walk->table();
  // 1 - p is the opposite of p.
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

std::int64_t loop_counts::last_of(std::uint32_t loop, evaluator& numbers, std::int64_t& counter) const {
  const auto leaves_at = [&](std::int64_t k) -> std::optional<bool> {
    counter = k;
    numbers.forget();
    bool known = false;
    for (const way_out& w : ways_out_[loop]) {
      const auto predicate = numbers.of(w.predicate);
      if (!predicate) continue;
      known = true;
      if (((*predicate & 1) != 0) == w.leaves_if) return true;
    }
    if (!known) return std::nullopt;
    return false;
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
    // Below 0: the numbers were equal before the loop, which does not run then.
    return last > most ? assumed : std::max<std::int64_t>(static_cast<std::int64_t>(last), -1);
  }
  // A way out stays open once it is open: loops count up or down to a bound.
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
