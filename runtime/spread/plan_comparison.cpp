#include "runtime/spread/plan_comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <new>
#include <utility>

#include "runtime/spread/time_budget.h"

namespace hpe::spread {

namespace {

std::string words_of(const cut& c) {
  std::string axes;
  for (std::size_t a = 0; a < c.parts_along.size(); ++a)
    if (c.parts_along[a] > 1) axes += fmt::format("{}{}", axes.empty() ? "" : " and ", "xyz"[a]);
  return axes.empty() ? "one device" : "cut along " + axes;
}

/// Returns the fastest plan for which `may` returns true. A spread plan replaces a plan on one device only if it is at
/// least 5 % faster (worth_while).
template <class Condition>
const plan* fastest_of(const std::vector<plan>& all, Condition may) {
  const plan* best = nullptr;
  for (const plan& p : all) {
    if (!may(p)) continue;
    const bool spreads_first = best != nullptr && p.how.is_spread() && !best->how.is_spread();
    if (best == nullptr || p.seconds < best->seconds * (spreads_first ? worth_while : 0.999)) best = &p;
  }
  return best;
}

std::string replicas_in_words(const decision& d, const kernel_model& kernel) {
  std::string names;
  for (std::size_t n = 0; n < d.arrays.size(); ++n)
    if (d.arrays[n].use_replica)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", kernel.parameter_at(kernel.pointers()[n].offset));
  return names.empty() ? "" : fmt::format("; each device reads its own copy of parameter {}", names);
}

}  // namespace

std::vector<cut> cuts_of(const kernel_model& kernel, const dimension& grid, std::uint32_t devices) {
  std::vector<cut> cuts;
  if (!kernel.obstacle().empty()) return cuts;
  for (std::uint32_t x = 1; x <= devices; ++x) {
    for (std::uint32_t y = 1; x * y <= devices; ++y) {
      if (devices % (x * y) != 0) continue;
      const std::uint32_t z = devices / (x * y);
      if (x <= grid[0] && y <= grid[1] && z <= grid[2]) cuts.push_back(cut_grid(grid, {x, y, z}));
    }
  }
  return cuts;
}

bool plan::moves_arrays() const {
  return std::any_of(moves.begin(), moves.end(),
                     [](const array_placement& m) { return m.how != array_placement::kind::stay; });
}

plan_comparison::plan_comparison(const kernel_model& kernel, const launch& l,
                                 std::span<const kernel_array* const> arrays, const traffic& t, const machine& m,
                                 double launches_of_a_copy)
    : arrays_(arrays), machine_(m), traffic_(t), launches_of_a_copy_(launches_of_a_copy) {
  for (std::uint32_t p = 0; p < arrays.size(); ++p) {
    if (arrays[p] == nullptr) {
      of_pointer_.push_back(0);
      continue;
    }
    auto found = std::find_if(allocations_.begin(), allocations_.end(),
                              [&](const placed_allocation& a) { return a.what->address == arrays[p]->address; });
    if (found == allocations_.end()) {
      found = allocations_.insert(found, {arrays[p], {}, arrays[p]->may_replicate && !kernel.writes_anywhere()});
    }
    found->users.push_back(p);
    found->may_replicate &= kernel.pointers()[p].may_be_copied;
    of_pointer_.push_back(static_cast<std::size_t>(found - allocations_.begin()));
  }
  const device_number home = m.alone >= 0 ? m.alone : most_common_home();
  const cut whole = whole_grid(l.grid, m.devices, home);
  add(whole, fmt::format("device {}", home));
  for (const cut& c : cuts_of(kernel, l.grid, m.devices)) add(c, words_of(c));
}

device_number plan_comparison::most_common_home() const {
  std::vector<std::uint64_t> bytes(machine_.devices);
  for (const placed_allocation& a : allocations_)
    for (const home_run& run : a.what->homes)
      if (run.home >= 0) bytes[static_cast<std::size_t>(run.home)] += run.last - run.first;
  return static_cast<device_number>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

cost plan_comparison::cost_of(const plan& p) const {
  std::vector<array_place> places(arrays_.size());
  for (std::uint32_t n = 0; n < arrays_.size(); ++n)
    if (arrays_[n] != nullptr) places[n] = {&p.homes[of_pointer_[n]], p.replicated[of_pointer_[n]]};
  return predict(traffic_, p.how, places, machine_);
}

void plan_comparison::add(const cut& c, const std::string& name) {
  plan now{name, c, std::vector<array_placement>(allocations_.size()), {}, {}, {}, {}};
  for (const placed_allocation& a : allocations_) {
    now.homes.push_back(a.what->homes);
    now.replicated.push_back(a.what->is_replicated && a.may_replicate && c.is_spread());
  }
  plan moved = now;
  moved.name += ", arrays moved";
  bool moves = false;
  for (std::size_t n = 0; n < allocations_.size(); ++n) {
    const kernel_array& a = *allocations_[n].what;
    const array_placement best = best_placement(allocations_[n], traffic_, c, machine_);
    if (best.how == array_placement::kind::stay) continue;
    moves = true;
    moved.moves[n] = best;
    moved.homes[n] = homes_under(best, a, machine_.devices);
    moved.replicated[n] = best.how == array_placement::kind::replicated;
    if (best.how == array_placement::kind::replicated) {
      moved.copy_seconds += bytes_to_copy(a, machine_) / machine_.copy_rate;
    } else if (!a.is_empty || !machine_.moves_empty_arrays_free) {
      moved.work += work_of_move(a, moved.homes[n]);
    }
  }
  now.predicted = cost_of(now);
  now.seconds = now.predicted.seconds;
  all_.push_back(std::move(now));
  if (!moves) return;
  moved.predicted = cost_of(moved);
  moved.seconds = moved.predicted.seconds + moved.copy_seconds / machine_.scale / launches_of_a_copy_;
  all_.push_back(std::move(moved));
}

const plan* plan_comparison::fastest_with_moves(bool is_spread) const {
  return fastest_of(all_, [&](const plan& p) { return p.moves_arrays() && p.how.is_spread() == is_spread; });
}

const plan& plan_comparison::fastest_without_moves() const {
  return *fastest_of(all_, [](const plan& p) { return !p.moves_arrays(); });
}

// The prediction assumes that reads over links overlap with all other work. This is not true for loops that wait for
// each value. Therefore this function prefers a plan with replicas whose predicted time is about the same.
const plan& plan_comparison::with_copies(const plan& best) const {
  constexpr double about = 1.02, many = 0.1;
  if (best.predicted.remote_share() < many) return best;
  for (const plan& p : all_)
    if (p.copy_seconds > 0 && p.how.parts_along == best.how.parts_along && p.seconds <= about * best.seconds &&
        p.predicted.remote_bytes < best.predicted.remote_bytes / 2)
      return p;
  return best;
}

double plan_comparison::seconds_elsewhere(const plan& best) const {
  plan p;
  for (const placed_allocation& a : allocations_) {
    array_placement dealt;
    if (a.what->granule == 0) {
      dealt.how = array_placement::kind::stay;
    } else if (best.how.is_spread()) {
      dealt.how = array_placement::kind::cyclic;
      dealt.run = a.what->granule;
    } else {
      dealt = first_placement(a.what->bytes, a.what->granule, machine_);
    }
    p.homes.push_back(homes_under(dealt, *a.what, machine_.devices));
    p.replicated.push_back(false);
  }
  p.how = best.how;
  double fastest = cost_of(p).seconds;
  if (best.how.is_spread()) return fastest;
  for (const plan& other : all_) {
    if (other.moves_arrays()) continue;
    p.how = other.how;
    fastest = std::min(fastest, cost_of(p).seconds);
  }
  return fastest;
}

decision plan_comparison::decision_for(const plan& chosen, const kernel_model& kernel) const {
  decision d;
  d.how = chosen.how;
  d.seconds = chosen.predicted.seconds;
  d.seconds_on_one = all_.front().predicted.seconds;
  for (const plan& p : all_) {
    if (!p.how.is_spread()) d.seconds_on_one = std::min(d.seconds_on_one, p.predicted.seconds);
    d.alternatives.push_back({p.name, p.predicted.seconds, machine_.moves.seconds(p.work) + p.copy_seconds,
                              p.predicted.remote_bytes, p.predicted.local_bytes, p.predicted.imbalance});
  }
  for (std::uint32_t n = 0; n < arrays_.size(); ++n) {
    array_decision& each = d.arrays.emplace_back();
    if (arrays_[n] == nullptr) continue;
    each.move_to = chosen.moves[of_pointer_[n]];
    each.use_replica = chosen.replicated[of_pointer_[n]];
  }
  const double factor = d.seconds_on_one / std::max(d.seconds, 1e-12);
  const plan* const other = d.is_spread() ? nullptr : fastest_of(all_, [](const plan& p) { return p.how.is_spread(); });
  if (!kernel.obstacle().empty()) {
    d.reason = kernel.obstacle();
  } else if (d.is_spread()) {
    d.reason =
        fmt::format("{}: {:.1f} % of its bytes are remote, predicted {:.2f} times as fast as one device{}",
                    words_of(d.how), 100 * chosen.predicted.remote_share(), factor, replicas_in_words(d, kernel));
  } else if (other == nullptr) {
    d.reason = "too few blocks for all devices";
  } else if (d.seconds < 4 * machine_.launch_seconds / machine_.scale * machine_.devices) {
    d.is_short = true;
    d.reason = fmt::format("short: predicted {:.1f} us", d.seconds * 1e6);
  } else {
    d.reason = fmt::format("{}: {:.0f} % of its bytes would be remote, predicted {:.2f} times as fast as one device",
                           words_of(other->how), 100 * other->predicted.remote_share(),
                           d.seconds_on_one / other->predicted.seconds);
  }
  return d;
}

std::shared_ptr<const sampled_traffic> sampled_traffic::of(const asked_launch& q, const machine& m,
                                                           const sample_size& size) {
  auto made = std::make_shared<sampled_traffic>();
  made->scalars = q.scalars();
  made->what = sample_traffic(q.kernel, q.l, q.arrays, cuts_of(q.kernel, q.l.grid, m.devices), size);
  return made;
}

bool outlook::may_be_spread() {
  return to(launch_way::spread).seconds > 0 && to(launch_way::spread).seconds < worth_while * alone.seconds;
}

outlook outlook::of(const asked_launch& q, const sampled_traffic& t, const machine& m, double launches_of_a_copy) {
  outlook result;
  result.scalars = t.scalars;
  const plan_comparison plans(q.kernel, q.l, q.arrays, t.what, m, launches_of_a_copy);
  const plan& now = plans.fastest_without_moves();
  result.stay = plans.decision_for(now, q.kernel);
  result.alone = plans.decision_for(plans.on_one_device(), q.kernel);
  const plan* best = &now;
  for (const launch_way w : {launch_way::alone, launch_way::spread}) {
    const plan* const moved = plans.fastest_with_moves(w == launch_way::spread);
    if (moved == nullptr) continue;
    result.to(w) = {plans.decision_for(*moved, q.kernel), moved->seconds, moved->work, moved->copy_seconds, 0};
    if (moved->seconds < worth_while * best->seconds) best = moved;
  }
  const plan& copied = plans.with_copies(now);
  if (best == &now && &copied != &now)
    result.to(launch_way::spread) = {plans.decision_for(copied, q.kernel), copied.seconds, copied.work,
                                     copied.copy_seconds, (1 - worth_while) * now.seconds};
  result.stake = std::max(0.0, plans.seconds_elsewhere(*best) - best->predicted.seconds);
  return result;
}

outlook_request::outlook_request(const asked_launch& q, const machine& m, const sample_size& size,
                                 double launches_of_a_copy, keys where, std::shared_ptr<const sampled_traffic> known)
    : kernel_(q.kernel),
      grid_(q.l.grid),
      block_(q.l.block),
      parameters_(static_cast<const std::byte*>(q.l.parameters),
                  static_cast<const std::byte*>(q.l.parameters) + q.l.parameter_bytes),
      machine_(m),
      size_(size),
      launches_of_a_copy_(launches_of_a_copy),
      keys_(std::move(where)),
      traffic_(std::move(known)) {
  for (const kernel_array* const a : q.arrays) arrays_.push_back(a != nullptr ? std::optional(*a) : std::nullopt);
}

void outlook_request::compute() {
  const std::function<double()> now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  const stopwatch watch(now);
  try {
    std::vector<const kernel_array*> arrays;
    for (const auto& a : arrays_) arrays.push_back(a ? &*a : nullptr);
    const launch l{grid_, block_, parameters_.data(), parameters_.size()};
    const asked_launch q{kernel_, l, arrays};
    has_sampled_ = traffic_ == nullptr;
    if (has_sampled_) traffic_ = sampled_traffic::of(q, machine_, size_);
    made_ = std::make_unique<outlook>(outlook::of(q, *traffic_, machine_, launches_of_a_copy_));
  } catch (const std::bad_alloc&) {
    made_ = nullptr;  // a later launch asks again
  }
  seconds_ = watch.seconds();
}

}  // namespace hpe::spread
