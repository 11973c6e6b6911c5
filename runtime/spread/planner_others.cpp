// An array has one placement for all kernels that use it. In an unmodified program, the planner moves arrays only if
// all these kernels together become faster.

#include <algorithm>
#include <map>

#include "runtime/spread/planner.h"
#include "runtime/spread/planner_tables.h"

namespace hpe::spread {

namespace {

constexpr std::uint64_t recent = 1024;  // kernels that were not among so many last launches do not count

/// The arrays that a move places, after the move, by address. They can then move no more.
std::map<std::uint64_t, kernel_array> placed_by(const asked_launch& q, const decision& move, std::uint32_t devices) {
  std::map<std::uint64_t, kernel_array> placed;
  for (std::size_t n = 0; n < q.arrays.size(); ++n) {
    const array_placement& to = move.arrays[n].move_to;
    if (q.arrays[n] == nullptr || to.how == array_placement::kind::stay || move.arrays[n].use_replica) continue;
    kernel_array after = *q.arrays[n];
    after.homes = homes_under(to, after, devices);
    after.granule = 0;
    placed.emplace(after.address, std::move(after));
  }
  return placed;
}

}  // namespace

double planner::loss_of_others(const account& of, const query& q, const decision& move) const {
  const std::map<std::uint64_t, kernel_array> placed = placed_by(q, move, machine_.devices);
  double loss = 0;
  for (const auto& [model, its] : kernels_) {
    if (its == nullptr) continue;
    for (const auto& c : its->cases) {
      const account& b = *c->of;
      const bool is_latest = c->last_launch == b.last_launch;
      if (&b == &of || !is_latest || c->now == nullptr || c->traffic == nullptr) continue;
      if (b.all_launches == 0 || of.last_launch - b.last_launch > recent) continue;
      std::vector<const kernel_array*> arrays;
      bool is_concerned = false;
      for (const auto& each : c->described) {
        const auto found = each ? placed.find(each->address) : placed.end();
        is_concerned |= found != placed.end();
        arrays.push_back(found != placed.end() ? &found->second : each ? &*each : nullptr);
      }
      if (!is_concerned) continue;
      const machine m = machine_for(b);
      const comparison_of_plans plans(*model, {c->grid, c->block}, arrays, c->traffic->what, m, b.uses_expected);
      const auto expected = [&](const plan& p) {
        return b.record->expected(p.how.is_spread() ? launch_way::spread : launch_way::alone, p.seconds);
      };
      double then = std::min(expected(plans.on_one_device()), expected(plans.fastest_without_moves()));
      for (const bool is_spread : {false, true})
        if (const plan* const p = plans.fastest_with_moves(is_spread)) then = std::min(then, expected(*p));
      double today = b.record->expected(launch_way::alone, c->now->alone.seconds);
      if (c->now->stay.is_spread())
        today = std::min(today, b.record->expected(launch_way::spread, c->now->stay.seconds));
      loss += std::max(then - today, 0.0) * static_cast<double>(b.all_launches) / static_cast<double>(of.all_launches);
    }
  }
  return loss;
}

}  // namespace hpe::spread
