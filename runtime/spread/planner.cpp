// A plan depends on the kernel, on the shape of the launch, on the parameters other than pointers, and on the layouts
// of the arrays: their sizes, homes and flags, but not their addresses. layout_ids gives each layout a number. The
// planner stores the plans (outlook) by kernel, shape and layouts. The planner stores the traffic of sampled
// blocks (sampled_traffic) by kernel, shape and sizes of the arrays, because the traffic does not depend on the homes.
//
// decide() first searches the known cases of the kernel, one by one. A case is a shape with the addresses and versions
// of the arrays, and refers to an outlook. Only if no case matches, decide() computes the layouts and searches the
// outlooks. Therefore a program that swaps arrays, or uses temporary arrays, needs no new plan.
//
// Each kernel has an account for each set of allocations that may move. The account counts the seconds that launches
// have lost because of the placement of these allocations, and records how long launches took, spread and on one
// device.

#include "runtime/spread/planner.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/spread/known_kernels.h"

namespace hpe::spread {

namespace {

constexpr std::size_t most_cases = 64;      // per kernel; a further case replaces the oldest case
constexpr std::size_t most_outlooks = 256;  // per kernel; a further outlook removes all outlooks of the kernel first

/// hpe compares a launch's parameters with the parameters of its plan only after a pause of some launches. The pause
/// doubles, up to longest_pause launches, each time a new plan has the same cut as the previous plan; otherwise it
/// becomes one launch. If no planning time is left, the pause is at least pause_without_time launches. For a launch
/// without a plan, hpe searches the plan again after pause_without_time launches, or once a plan of the kernel has
/// been added, because the search takes some microseconds.
constexpr std::uint32_t longest_pause = 4096, pause_without_time = 16;

/// For an unmodified program (not when_planned::at_once): the number, counted from the last move of the arrays, of the
/// first launch of a kernel over these arrays at which hpe may distribute the arrays, or move them back to one device.
constexpr std::uint64_t launches_before_a_move = 3, launches_before_a_return = 2;
/// A move is worthwhile only if the launch gains this many times as much as launches of other kernels lose.
constexpr double weight_of_others = 2;
/// The price of a trial of the slower way, as a number of moves: the arrays move, launches lose as much time as a move
/// takes, and the arrays move back.
constexpr double moves_of_a_try = 3;

/// If a launch would gain fewer seconds, it does not matter whether it is queued before its kernel is ready.
constexpr double gain_of_early_launch = 2e-5;
constexpr std::uint64_t most_early_launches = 1024;  // of a kernel over the same arrays

// Faster than operator==, which calls memcmp.
bool is_same(const dimension& a, const dimension& b) { return a[0] == b[0] && a[1] == b[1] && a[2] == b[2]; }

}  // namespace

/// The move that would make a launch faster.
struct planner::wish {
  outlook::move* what = nullptr;  // null if no move makes the launch faster
  double loss = 0;                // seconds that the launch loses without the move
  bool is_try = false;            // whether the move is a trial of the slower way
};

double planner::seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

planner::planner(const machine& m, const sample_size& size, when_planned when, clock now)
    : machine_(m),
      size_(size),
      when_(when),
      now_(std::move(now)),
      kernels_(std::make_unique<known_kernels>(machine_, when == when_planned::elsewhere)),
      unplanned_uses_(std::make_unique<unplanned_uses>()) {
  home_.how = array_placement::kind::one;
  home_.home = std::max(m.alone, 0);
}
planner::~planner() = default;

known_kernel& planner::known(const kernel_model& kernel) {
  const auto [found, is_new] = kernels_->of(kernel);
  if (is_new) budget_.begin(now_());
  return found;
}

known_case* planner::find_case(known_kernel& kernel, const query& q) {
  const auto is_it = [&](const known_case& c) {
    if (!is_same(c.grid, q.l.grid) || !is_same(c.block, q.l.block)) return false;
    for (std::size_t n = 0; n < q.arrays.size(); ++n)
      if (c.arrays[n] != known_case::array_of(q, n)) return false;
    return true;
  };
  if (kernel.latest != nullptr && is_it(*kernel.latest)) return kernel.latest;
  for (const auto& c : kernel.cases)
    if (is_it(*c)) return kernel.latest = c.get();
  return nullptr;
}

known_case& planner::add_case(known_kernel& kernel, const query& q) {
  auto made = std::make_unique<known_case>();
  made->grid = q.l.grid;
  made->block = q.l.block;
  for (std::size_t n = 0; n < q.arrays.size(); ++n) made->arrays.push_back(known_case::array_of(q, n));
  for (const kernel_array* const a : q.arrays)
    made->described.push_back(a != nullptr ? std::optional(*a) : std::nullopt);
  made->of = &account_of(kernel, q);
  if (kernel.cases.size() < most_cases) {
    kernel.latest = kernel.cases.emplace_back(std::move(made)).get();
  } else {
    std::unique_ptr<known_case>& place = kernel.cases[kernel.oldest++ % most_cases];
    if (place->of->asked == place.get()) place->of->asked = nullptr;
    place = std::move(made);
    kernel.latest = place.get();
  }
  return *kernel.latest;
}

account& planner::account_of(known_kernel& kernel, const query& q) {
  std::vector<std::uint64_t> addresses;
  for (const kernel_array* const a : q.arrays)
    if (a != nullptr && a->granule > 0) addresses.push_back(a->address);
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  std::unique_ptr<account>& entry = kernel.accounts[addresses];
  if (entry == nullptr) {
    entry = std::make_unique<account>();
    entry->addresses = std::move(addresses);
  }
  return *entry;
}

bool planner::may_plan(const known_kernel& kernel, double beyond) const {
  return budget_.allows(2 * kernel.plan_seconds, now_(), beyond);
}

std::string planner::key_of(const std::string& key_of_traffic, const std::vector<std::uint32_t>& layouts, double uses,
                            double scale) {
  std::string key = key_of_traffic;
  for (const std::uint32_t layout : layouts) append(key, layout);
  // The key contains only the order of magnitude of the number of launches that use a replica.
  append(key, std::isfinite(uses) ? std::ilogb(std::max(uses, 1.0)) : -1);
  append(key, std::ilogb(scale));
  return key;
}

outlook* planner::outlook_of(known_kernel& kernel, known_case& c, const query& q) {
  std::string key = q.key_of_traffic();
  std::vector<std::uint32_t> layouts;
  for (const kernel_array* const a : q.arrays) layouts.push_back(layouts_.of(a));
  const double uses = c.of->uses_expected;
  const machine m = kernels_->machine_for(*c.of);
  c.wanted_scale = m.scale;
  c.added = kernel.added;
  std::string lying = key_of(key, layouts, uses, m.scale);
  if (const auto found = kernel.outlooks.find(lying); found != kernel.outlooks.end()) {
    remember(*c.of, q, *found->second);
    c.scale = m.scale;
    if (const auto sampled = kernel.samples.find(key); sampled != kernel.samples.end()) c.traffic = sampled->second;
    return found->second.get();
  }
  const double beyond = when_ == when_planned::elsewhere ? allowance_elsewhere : allowance;
  if (when_ != when_planned::at_once && !may_plan(kernel, beyond)) return nullptr;
  if (when_ == when_planned::elsewhere) {
    ask(kernel, q, m, key, lying, uses);
    return nullptr;
  }
  make_room_for_outlook(kernel);
  const stopwatch watch(now_);
  std::shared_ptr<const sampled_traffic>& traffic = kernel.samples[std::move(key)];
  const bool is_sampled = traffic != nullptr;
  if (!is_sampled) traffic = sampled_traffic::of(q, machine_, size_);
  outlook* const made =
      kernel.outlooks.emplace(std::move(lying), std::make_unique<outlook>(outlook::of(q, *traffic, m, uses)))
          .first->second.get();
  remember(*c.of, q, *made);
  c.scale = m.scale;
  c.traffic = traffic;
  const double took = watch.seconds();
  if (!is_sampled) kernel.plan_seconds = took;
  budget_.spend(took);
  return made;
}

void planner::make_room_for_outlook(known_kernel& kernel) {
  if (kernel.outlooks.size() < most_outlooks) return;
  for (const auto& each : kernel.cases) each->now = nullptr;
  kernel.outlooks.clear();
  kernel.samples.clear();
}

void planner::ask(known_kernel& kernel, const query& q, const machine& m, const std::string& traffic_key,
                  const std::string& key, double uses) {
  if (kernel.asked.contains(key)) return;
  const auto known = kernel.samples.find(traffic_key);
  requests_.push_back(std::make_shared<outlook_request>(q, m, size_, uses,
                                                        outlook_request::keys{traffic_key, key, kernel.number},
                                                        known != kernel.samples.end() ? known->second : nullptr));
  kernel.asked.insert(key);
}

bool planner::wants(const outlook_request& missing) const {
  const known_kernel* const found = kernels_->find(missing.kernel_);
  return found != nullptr && found->number == missing.keys_.kernel_number;
}

void planner::add(outlook_request& computed) {
  if (!wants(computed)) return;
  known_kernel& kernel = *kernels_->find(computed.kernel_);
  budget_.spend(computed.seconds_);
  kernel.asked.erase(computed.keys_.of_outlook);
  if (computed.made_ == nullptr) return;
  if (computed.has_sampled_) kernel.plan_seconds = computed.seconds_;
  make_room_for_outlook(kernel);
  kernel.samples.insert_or_assign(computed.keys_.of_traffic, computed.traffic_);
  kernel.outlooks.try_emplace(computed.keys_.of_outlook, std::move(computed.made_));
  ++kernel.added;
}

void planner::remember(account& a, const query& q, const outlook& made) {
  a.block = made.stay.is_spread() ? q.l.block : dimension{};
  a.grid = q.l.grid;
  a.parts_along = made.stay.how.parts_along;
  a.reason = made.stay.reason;
}

void planner::refresh(known_kernel& kernel, known_case& c, const query& q) {
  c.until_look = c.pause;
  if (q.has_scalars(c.now->scalars)) return;
  if (!may_plan(kernel, 0)) {
    c.until_look = std::max(c.pause, pause_without_time);
    return;
  }
  const stopwatch watch(now_);
  std::shared_ptr<const sampled_traffic>& traffic = kernel.samples[q.key_of_traffic()];
  traffic = sampled_traffic::of(q, machine_, size_);
  const std::array<std::uint32_t, 3> before = c.now->stay.how.parts_along;
  *c.now = outlook::of(q, *traffic, kernels_->machine_for(*c.of), c.of->uses_expected);
  c.traffic = traffic;
  remember(*c.of, q, *c.now);
  c.pause = before == c.now->stay.how.parts_along ? std::min(2 * c.pause, longest_pause) : 1;
  c.until_look = c.pause;
  kernel.plan_seconds = watch.seconds();
  budget_.spend(kernel.plan_seconds);
}

void planner::expect(known_kernel& kernel, const query& q, const decision& move, const account& a) {
  const auto traffic = kernel.samples.find(q.key_of_traffic());
  if (traffic == kernel.samples.end()) return;
  std::vector<kernel_array> after(q.arrays.size());
  std::vector<const kernel_array*> arrays(q.arrays.size());
  std::vector<std::uint32_t> layouts;
  for (std::size_t n = 0; n < q.arrays.size(); ++n) {
    if (q.arrays[n] != nullptr) {
      // All pointers into one allocation have the same placement.
      after[n] = *q.arrays[n];
      after[n].homes = homes_under(move.arrays[n].move_to, after[n], machine_.devices);
      after[n].is_replicated = move.arrays[n].use_replica;
      after[n].is_empty = false;
      arrays[n] = &after[n];
    }
    layouts.push_back(arrays[n] == nullptr ? layouts_.of(nullptr) : layouts_.of_homes(after[n]));
  }
  const machine m = kernels_->machine_for(a);
  std::string key = key_of(traffic->first, layouts, a.uses_expected, m.scale);
  if (kernel.outlooks.contains(key)) return;
  const stopwatch watch(now_);
  kernel.outlooks.emplace(std::move(key), std::make_unique<outlook>(outlook::of({q.kernel, q.l, arrays},
                                                                                *traffic->second, m, a.uses_expected)));
  budget_.spend(watch.seconds());
}

// Returns `alone` if the plan does not spread the launch; otherwise the measured times decide.
launch_way planner::choose(account& a, outlook& now) {
  if (!now.stay.is_spread()) return launch_way::alone;
  if (a.is_try) return launch_way::spread;
  const way_record::prediction predicted{now.alone.seconds, now.stay.seconds, now.alone.seconds_on_one};
  const launch_way chosen = a.record->choose(predicted);
  if (chosen == launch_way::alone && !std::exchange(now.was_measured, true))
    now.alone.reason = fmt::format(
        "launches over several devices were measured to be {:.2f} times as fast as on one device",
        a.record->expected(launch_way::alone, predicted) / a.record->expected(launch_way::spread, predicted));
  return chosen;
}

planner::wish planner::wish_of(account& a, outlook& now, launch_way chosen) {
  way_record& r = *a.record;
  const double stays = r.expected(chosen, chosen == launch_way::spread ? now.stay.seconds : now.alone.seconds);
  wish best;
  double fastest = stays;
  for (const launch_way w : {launch_way::alone, launch_way::spread}) {
    outlook::move& m = now.to(w);
    if (m.seconds == 0) continue;
    // If no launch on one device was measured, the correction for spread launches applies, because launches do the same
    // work in both ways.
    const double expected = r.expected(w == launch_way::alone && r.count(w) == 0 ? chosen : w, m.seconds);
    if (m.least_loss > 0 && w == chosen && best.what == nullptr) {
      best = {&m, std::max(stays - expected, m.least_loss)};
    } else if (expected < worth_while * fastest) {
      best = {&m, stays - expected};
      fastest = expected;
    }
  }
  // Try again to spread a launch whose arrays are on one device because spread launches were slower than predicted.
  outlook::move& spread = now.to(launch_way::spread);
  if (best.what == nullptr && chosen == launch_way::alone && r.count(launch_way::spread) > 0 && now.may_be_spread() &&
      r.may_try(moves_of_a_try * spread.price(machine_.moves) + r.expected(launch_way::spread, spread.seconds)))
    best = {&spread, spread.price(machine_.moves), true};
  return best;
}

// Asks the caller to measure this launch, if the result may change later decisions.
void planner::measure(account& a, outlook& now, launch_way how, double spread) {
  if (how == launch_way::alone && !now.stay.is_spread() && !now.may_be_spread()) return probe(a, now);
  const bool is_try = std::exchange(a.is_try, false);
  if (!is_try && !a.record->is_due(how)) return;
  if (measurement_.record != a.record) measurement_.record = a.record;
  measurement_.how = how;
  measurement_.predicted = {now.alone.seconds, spread, now.alone.seconds_on_one};
  measurement_.is_on_trial = is_try || a.record->is_on_trial(how);
  is_measured_ = true;
}

// A kernel may be predicted to be too short for several devices because the planner does not know how often its loops
// repeat. So the caller measures pairs of its launches, until two have been measured, without waiting for their ends.
void planner::probe(account& a, const outlook& now) {
  constexpr std::uint32_t pair = 2, pause = 4, most_probes = 64;
  if (when_ != when_planned::elsewhere || !a.record->is_on_trial(launch_way::alone) ||
      now.alone.alternatives.size() < 2)
    return;
  if (a.probes > most_probes) return;
  is_early_ = true;
  if (a.probes++ % pause >= pair) return;
  measurement_ = {a.record, launch_way::alone, {now.alone.seconds, now.alone.seconds, now.alone.seconds_on_one}, false};
  is_measured_ = true;
}

// Returns the decision for a launch without a plan: the cut of an earlier launch over the same arrays whose grid has
// about the same size, or one device.
const decision& planner::without_plan(const account& of, const query& q) {
  // Not destroyed, because threads may launch kernels while the process ends.
  static const auto& not_planned =
      *new std::string(fmt::format("not planned yet: planning may take at most {:.0f} % of the time", share * 100));
  unplanned_.arrays.resize(q.arrays.size());  // none of these arrays moves
  const auto blocks = [](const dimension& grid) { return std::uint64_t{grid[0]} * grid[1] * grid[2]; };
  bool is_alike =
      of.block == q.l.block && 2 * blocks(q.l.grid) >= blocks(of.grid) && blocks(q.l.grid) <= 2 * blocks(of.grid);
  for (std::size_t a = 0; a < 3; ++a) is_alike &= q.l.grid[a] >= of.parts_along[a];
  if (is_alike) {
    unplanned_.how = cut_grid(q.l.grid, of.parts_along);
    unplanned_.reason = of.reason + ", for a grid of about this size";
    return unplanned_;
  }
  unplanned_.how = whole_grid(q.l.grid, machine_.devices, std::max(machine_.alone, 0));
  unplanned_.reason = not_planned;
  return unplanned_;
}

// hpe loads a kernel's code for several devices only after the kernel's launches have lost as much time as the loading
// takes. Therefore a short program loses at most about as much time as it could have gained.
void planner::count_wait(known_kernel& k, double loss, const start_cost& start) {
  k.waited += std::max(loss, 0.0);
  waited_ += std::max(loss, 0.0);
  wants_start_ = k.waited >= start.kernel_seconds && waited_ >= start.process_seconds + start.kernel_seconds;
}

// Returns the decision for a launch that has no plan, while its kernel is not ready: one device.
const decision& planner::wait_without_plan(known_kernel& k, const account& a, const query& q, const start_cost& start) {
  count_wait(k, a.gain, start);  // the gain of the last planned launch of about this size
  unplanned_.how = whole_grid(q.l.grid, machine_.devices, std::max(machine_.alone, 0));
  return unplanned_;
}

const decision& planner::decide(const kernel_model& kernel, const launch& l,
                                std::span<const kernel_array* const> arrays, const start_cost* start) {
  const query q{kernel, l, arrays};
  known_kernel& k = known(kernel);
  known_case* c = find_case(k, q);
  if (c == nullptr) {
    if (layouts_.is_full()) {
      forget_all();
      return decide(kernel, l, arrays, start);
    }
    c = &add_case(k, q);
  } else if (c->of->asked == c) {
    c->stays = true;  // the homes are not the homes that the last decision asked for, so the move has failed
  }
  account& a = *c->of;
  a.asked = nullptr;
  is_measured_ = wants_start_ = is_early_ = lacks_plan_ = false;
  unplanned_uses_->next_launch();
  const auto unplanned = [&]() -> const decision& {
    for (const std::uint64_t address : a.addresses) unplanned_uses_->add(address);
    is_early_ = !k.asked.empty();
    const decision& like_earlier = without_plan(a, q);
    lacks_plan_ = !is_early_ && !like_earlier.is_spread();
    return start == nullptr || !like_earlier.is_spread() ? like_earlier : wait_without_plan(k, a, q, *start);
  };
  if (c->now == nullptr) {
    if (--c->until_look > 0 && c->added == k.added) return unplanned();
    c->now = outlook_of(k, *c, q);
    c->until_look = c->now != nullptr ? 1 : pause_without_time;
    if (c->now == nullptr) return unplanned();
  }
  if (--c->until_look == 0) refresh(k, *c, q);
  if (count_uses(a, *c->now)) {
    c->now = outlook_of(k, *c, q);
    if (c->now == nullptr) return unplanned();
  }
  if (when_ == when_planned::elsewhere && c->scale != a.record->scale()) rescale(k, *c, q);
  outlook& now = *c->now;
  const launch_way chosen = choose(a, now);
  ++a.launches;
  ++a.all_launches;
  a.last_launch = c->last_launch = unplanned_uses_->launches();
  const wish wished = c->stays ? wish{} : wish_of(a, now, chosen);
  if (start != nullptr && (chosen == launch_way::spread || (wished.what != nullptr && wished.what->how.is_spread()))) {
    const double gain = chosen == launch_way::spread ? a.record->expected(launch_way::alone, now.alone.seconds) -
                                                           a.record->expected(launch_way::spread, now.stay.seconds)
                                                     : 0;
    a.gain = gain + wished.loss;
    // The first measured launch includes the loading of the program's own code, so its time is no measure of a gain.
    const bool is_first = a.record->count(launch_way::alone) == 1 && a.record->is_on_trial(launch_way::alone);
    if (!is_first) count_wait(k, a.gain, *start);
    is_early_ = a.gain > gain_of_early_launch && a.launches < most_early_launches;
    measure(a, now, launch_way::alone, now.stay.is_spread() ? now.stay.seconds : now.to(launch_way::spread).seconds);
    return now.alone;
  }
  if (wished.what == nullptr) {
    settle(a.addresses, a.record->expected(chosen, now.stake));
  } else if (is_due(a, q, wished)) {
    const outlook::move& move = *wished.what;
    forget(a);
    a.asked = move.how.gives_homes() ? c : nullptr;
    a.has_copies = move.how.uses_copies();
    a.uses = 1;
    a.is_try = wished.is_try;
    // The caller does not measure a launch that moves arrays to other homes, because later launches do not repeat the
    // move. The caller measures a launch that only copies arrays, because the copies recur.
    if (a.asked == nullptr) measure(a, now, launch_way::spread, move.how.seconds + move.price(machine_.moves));
    expect(k, q, move.how, a);
    return move.how;
  }
  if (chosen == launch_way::alone) {
    measure(a, now, chosen, now.stay.is_spread() ? now.stay.seconds : now.to(launch_way::spread).seconds);
    return now.alone;
  }
  measure(a, now, chosen, now.stay.seconds);
  return now.stay;
}

// In an unmodified program, the planner decides about moves after measured launches. The first launch is slower than
// later launches, because it loads code, so the gain of spreading is known only from the third launch on. The loss of
// the third launch counts three times. After a move, the caller measures one launch before arrays may move back.
bool planner::is_due(account& a, const query& q, const wish& wished) {
  const double price = wished.what->price(machine_.moves);
  if (wished.is_try || price == 0) return true;
  const decision& how = wished.what->how;
  std::uint64_t first = 1;
  if (when_ != when_planned::at_once && how.gives_homes())
    first = how.is_spread() ? launches_before_a_move : launches_before_a_return;
  if (a.launches < first) return false;
  if (a.lost == 0)
    for (const std::uint64_t address : a.addresses) unhappy_[address].push_back(&a);
  a.lost += wished.loss * static_cast<double>(a.launches == first ? first : 1);
  if (when_ == when_planned::at_once || !how.gives_homes()) return a.lost >= price;
  const double patient = std::ldexp(price, static_cast<int>(std::min(a.refusals, 10U)));
  if (a.lost < patient) return false;
  if (how.is_spread() && unplanned_uses_->concern(a.addresses)) return false;
  if (wished.loss > weight_of_others * kernels_->loss_of_others(a, q, how)) return true;
  ++a.refusals;
  a.lost = std::numeric_limits<double>::min();
  return false;
}

const array_placement* planner::stays(const kernel_array& array) {
  if (array.granule == 0 || machine_.alone < 0) return nullptr;
  const std::vector<home_run> home{{0, array.bytes, machine_.alone}};
  const move_work back = work_of_move(array, home);
  const double rate = 1 / machine_.read_rate - 1 / machine_.local_rate;  // additional seconds for a remote byte
  if (back.none()) {
    settle({&array.address, 1}, static_cast<double>(array.bytes) * (machine_.devices - 1) / machine_.devices * rate,
           true);
    return nullptr;
  }
  std::unique_ptr<account>& entry = residents_[array.address];
  if (entry == nullptr) {
    entry = std::make_unique<account>();
    entry->addresses = {array.address};
    entry->is_resident = true;
  }
  if (entry->asked_version == array.version) return nullptr;  // the last move that stays() returned has failed
  if (entry->lost == 0) unhappy_[array.address].push_back(entry.get());
  entry->lost += back.bytes * rate;
  if (entry->lost < machine_.moves.seconds(back)) return nullptr;
  forget(*entry);
  entry->asked_version = array.version;
  return &home_;
}

// Counts the launches that use the present replicas. If the program writes arrays between launches, their replicas
// become outdated, and plans must include the time to copy the replicas again. Returns whether plans must change for
// that reason.
bool planner::count_uses(account& a, const outlook& now) {
  if (!a.has_copies) return false;
  if (now.stay.uses_copies()) return ++a.uses, false;
  a.has_copies = false;
  return std::exchange(a.uses_expected, a.uses) != a.uses;
}

// Plans the launch for the measured scale of the kernel. Until this plan is computed, the launch has its old plan.
void planner::rescale(known_kernel& kernel, known_case& c, const query& q) {
  if (c.wanted_scale == c.of->record->scale() && c.added == kernel.added) return;
  if (outlook* const found = outlook_of(kernel, c, q); found != nullptr) c.now = found;
}

// Called for a launch whose arrays have the best placement. Reduces the losses of the accounts that would move these
// arrays. In an unmodified program, is_due() itself compares the kernels that the planner has planned.
void planner::settle(std::span<const std::uint64_t> addresses, double stake, bool from_resident) {
  if (stake <= 0 || unhappy_.empty()) return;
  for (const std::uint64_t address : addresses) {
    const auto others = unhappy_.find(address);
    if (others == unhappy_.end()) continue;
    for (account* const other : others->second)
      if (when_ == when_planned::at_once || other->is_resident || from_resident)
        other->lost = std::max(std::numeric_limits<double>::min(), other->lost - stake);
  }
}

void planner::forget(account& a) {
  for (const std::uint64_t address : a.addresses) {
    const auto found = unhappy_.find(address);
    if (found == unhappy_.end()) continue;
    std::erase(found->second, &a);
    if (found->second.empty()) unhappy_.erase(found);
  }
  a.lost = 0;
  a.launches = 0;
  a.refusals = 0;
}

void planner::forget(std::uint64_t address) {
  kernels_->forget(address, [this](account& a) { forget(a); });
  if (const auto found = residents_.find(address); found != residents_.end()) {
    forget(*found->second);
    residents_.erase(found);
  }
  layouts_.forget(address);
  unplanned_uses_->forget(address);
}

void planner::forget(const kernel_model& kernel) {
  kernels_->forget(kernel, [this](account& a) { forget(a); });
}

void planner::forget_all() {
  kernels_->forget_all();
  residents_.clear();
  unhappy_.clear();
  layouts_ = {};
  unplanned_uses_->forget_all();
}

}  // namespace hpe::spread
