// An array has one placement for all kernels that use it. In an unmodified program, the planner moves arrays only if
// all these kernels together become faster (loss_of_others).

#include "runtime/spread/known_kernels.h"

#include <algorithm>

namespace hpe::spread {

namespace {

constexpr std::uint64_t recent = 1024;  // a kernel counts only if one of so many latest launches was its own

/// Returns the arrays that a move places, by address, as they are after the move. None of them can move again.
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

std::pair<known_kernel&, bool> known_kernels::of(const kernel_model& kernel) {
  if (latest_ != nullptr && latest_->first == &kernel) return {*latest_->second, false};
  auto found = kernels_.find(&kernel);
  const bool is_new = found == kernels_.end();
  if (is_new) {
    found = kernels_.emplace(&kernel, std::make_unique<known_kernel>()).first;
    found->second->number = ++made_;
  }
  latest_ = &*found;
  return {*found->second, is_new};
}

known_kernel* known_kernels::find(const kernel_model& kernel) {
  const auto found = kernels_.find(&kernel);
  return found != kernels_.end() ? found->second.get() : nullptr;
}

machine known_kernels::machine_for(const account& a) const {
  machine result = machine_;
  if (scales_) result.scale = a.record->scale();
  return result;
}

double known_kernels::loss_of_others(const account& of, const asked_launch& q, const decision& move) const {
  const std::map<std::uint64_t, kernel_array> placed = placed_by(q, move, machine_.devices);
  double loss = 0;
  for (const auto& [model, its] : kernels_) {
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
      const plan_comparison plans(*model, {c->grid, c->block}, arrays, c->traffic->what, m, b.uses_expected);
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

void known_kernels::forget(std::uint64_t address, function_ref<void(account&)> ends) {
  for (const auto& [model, k] : kernels_) {
    std::erase_if(k->cases, [&](const auto& c) {
      return std::ranges::any_of(c->arrays, [&](const auto& array) { return array.address == address; });
    });
    k->latest = nullptr;
    for (const auto& [addresses, a] : k->accounts) a->asked = nullptr;
    std::erase_if(k->accounts, [&](const auto& each) {
      if (!std::ranges::binary_search(each.first, address)) return false;
      ends(*each.second);
      return true;
    });
  }
}

void known_kernels::forget(const kernel_model& kernel, function_ref<void(account&)> ends) {
  const auto found = kernels_.find(&kernel);
  if (found == kernels_.end()) return;
  for (const auto& [addresses, a] : found->second->accounts) ends(*a);
  latest_ = nullptr;
  kernels_.erase(found);
}

void known_kernels::forget_all() {
  latest_ = nullptr;
  kernels_.clear();
}

}  // namespace hpe::spread
