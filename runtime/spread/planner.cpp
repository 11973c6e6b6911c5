// An account belongs to launches that access the same memory: of one kernel, with the same shape, decisive parameters
// and allocations. It keeps the latest decisions. While its launches would run faster with their arrays elsewhere, it
// also counts the seconds that they have lost.

#include "runtime/spread/planner.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/spread/placing.h"

namespace hpe::spread {

namespace {

constexpr double worth_while = 0.95;         // the share of the time to which spreading or moving must bring it
constexpr std::size_t most_accounts = 4096;  // beyond, all are forgotten
constexpr std::size_t most_outlooks = 4;  // of an account; beyond, the one that was not used for longest is forgotten

/// The candidates: each axis alone, and for several factors of the number of devices, two axes together.
std::vector<cut> cuts_of(const dimension& grid, std::uint32_t devices) {
  std::vector<cut> cuts;
  for (std::uint32_t x = 1; x <= devices; ++x) {
    for (std::uint32_t y = 1; x * y <= devices; ++y) {
      if (devices % (x * y) != 0) continue;
      const std::uint32_t z = devices / (x * y);
      if (x <= grid[0] && y <= grid[1] && z <= grid[2]) cuts.push_back(cut_grid(grid, {x, y, z}));
    }
  }
  return cuts;
}

std::string words_of(const cut& c) {
  std::string axes;
  for (std::size_t a = 0; a < c.pieces.size(); ++a)
    if (c.pieces[a] > 1) axes += fmt::format("{}{}", axes.empty() ? "" : " and ", "xyz"[a]);
  return axes.empty() ? "one device" : "cut along " + axes;
}

struct plan {
  std::string name;
  cut how;
  std::vector<placement> moves;              // of each allocation
  std::vector<std::vector<home_run>> homes;  // that they lead to
  std::vector<bool> replicated;
  cost predicted;
  double move_seconds = 0;  // copies included
  double copy_seconds = 0;  // of new replicas
  double seconds = 0;       // predicted, with the launch's share of the copies
};

/// All that is compared for one launch.
class comparison_of_plans {
 public:
  /// launches_of_a_copy: how many launches use a replica before it is outdated.
  comparison_of_plans(const kernel_model& kernel, const launch& l, std::span<const allocation* const> arrays,
                      const machine& m, const sample_size& size, double launches_of_a_copy)
      : arrays_(arrays),
        machine_(m),
        launches_of_a_copy_(launches_of_a_copy),
        cuts_(kernel.obstacle().empty() ? cuts_of(l.grid, m.devices) : std::vector<cut>{}) {
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
    traffic_ = sample_traffic(kernel, l, arrays, cuts_, size);
    const device_number home = m.alone >= 0 ? m.alone : most_common_home();
    const cut whole = whole_grid(l.grid, m.devices, home);
    add(whole, fmt::format("device {}", home));
    for (const cut& c : cuts_) add(c, words_of(c));
  }

  [[nodiscard]] const std::vector<plan>& all() const { return all_; }
  [[nodiscard]] decision decision_for(const plan& chosen, const kernel_model& kernel) const;

  /// The time with all that can move dealt out by granules: that of a launch whose arrays lie for another kernel.
  [[nodiscard]] double seconds_elsewhere(const cut& c) const {
    plan p;
    p.how = c;
    for (const placed_allocation& a : allocations_) {
      placement dealt;
      dealt.how = a.what->granule == 0 ? placement::kind::stay : placement::kind::cyclic;
      dealt.run = a.what->granule;
      p.homes.push_back(homes_under(dealt, *a.what, machine_.devices));
      p.replicated.push_back(false);
    }
    return cost_of(p).seconds;
  }

 private:
  [[nodiscard]] device_number most_common_home() const {
    std::vector<std::uint64_t> bytes(machine_.devices);
    for (const placed_allocation& a : allocations_)
      for (const home_run& run : a.what->homes)
        if (run.home >= 0) bytes[static_cast<std::size_t>(run.home)] += run.last - run.first;
    return static_cast<device_number>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
  }

  [[nodiscard]] cost cost_of(const plan& p) const {
    std::vector<array_place> places(arrays_.size());
    for (std::uint32_t n = 0; n < arrays_.size(); ++n)
      if (arrays_[n] != nullptr) places[n] = {&p.homes[of_pointer_[n]], p.replicated[of_pointer_[n]]};
    return predict(traffic_, p.how, places, machine_);
  }

  void add(const cut& c, const std::string& name) {
    plan now{name, c, std::vector<placement>(allocations_.size()), {}, {}, {}, 0};
    for (const placed_allocation& a : allocations_) {
      now.homes.push_back(a.what->homes);
      now.replicated.push_back(a.what->is_replicated && a.may_replicate && c.is_spread());
    }
    plan moved = now;
    moved.name += ", arrays moved";
    bool moves = false;
    for (std::size_t n = 0; n < allocations_.size(); ++n) {
      const allocation& a = *allocations_[n].what;
      const placement best = best_place(allocations_[n], traffic_, c, machine_);
      if (best.how == placement::kind::stay) continue;
      moves = true;
      moved.moves[n] = best;
      moved.homes[n] = homes_under(best, a, machine_.devices);
      moved.replicated[n] = best.how == placement::kind::replicated;
      const double bytes = bytes_to_move(a, best, moved.homes[n], machine_);
      if (best.how == placement::kind::replicated) {
        moved.move_seconds += bytes / machine_.copy_rate;
        moved.copy_seconds += bytes / machine_.copy_rate;
      } else if (!a.is_empty) {
        moved.move_seconds +=
            bytes / machine_.move_rate + machine_.granule_seconds * bytes / static_cast<double>(a.granule);
      }
    }
    now.predicted = cost_of(now);
    now.seconds = now.predicted.seconds;
    all_.push_back(std::move(now));
    if (!moves) return;
    moved.predicted = cost_of(moved);
    moved.seconds = moved.predicted.seconds + moved.copy_seconds / launches_of_a_copy_;
    all_.push_back(std::move(moved));
  }

  std::span<const allocation* const> arrays_;
  const machine& machine_;
  const double launches_of_a_copy_;
  std::vector<cut> cuts_;
  std::vector<placed_allocation> allocations_;
  std::vector<std::size_t> of_pointer_;
  traffic traffic_;
  std::vector<plan> all_;
};

bool moves_arrays(const plan& p) {
  return std::any_of(p.moves.begin(), p.moves.end(), [](const placement& m) { return m.how != placement::kind::stay; });
}

/// The fastest one that `may` be chosen; spreading has to be worth while.
template <class Condition>
const plan* fastest(const std::vector<plan>& all, Condition may) {
  const plan* best = nullptr;
  for (const plan& p : all) {
    if (!may(p)) continue;
    const bool spreads_first = best != nullptr && p.how.is_spread() && !best->how.is_spread();
    if (best == nullptr || p.seconds < best->seconds * (spreads_first ? worth_while : 0.999)) best = &p;
  }
  return best;
}

/// A plan whose prediction is about as good as that of the fastest, with copies in the place of remote reads. The
/// prediction lets reads over links overlap with all else, which loops that wait for each value do not reach.
const plan* with_copies(const std::vector<plan>& all, const plan& best) {
  constexpr double about = 1.02, many = 0.1;
  if (best.predicted.remote_share() < many) return &best;
  for (const plan& p : all)
    if (p.copy_seconds > 0 && p.how.pieces == best.how.pieces && p.seconds <= about * best.seconds &&
        p.predicted.remote_bytes < best.predicted.remote_bytes / 2)
      return &p;
  return &best;
}

std::string replicas_in_words(const decision& d, const kernel_model& kernel) {
  std::string names;
  for (std::size_t n = 0; n < d.arrays.size(); ++n)
    if (d.arrays[n].use_replica)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", kernel.parameter_at(kernel.pointers()[n].offset));
  return names.empty() ? "" : fmt::format("; each device reads its own copy of parameter {}", names);
}

decision comparison_of_plans::decision_for(const plan& chosen, const kernel_model& kernel) const {
  decision d;
  d.how = chosen.how;
  d.seconds = chosen.predicted.seconds;
  d.seconds_on_one = all_.front().predicted.seconds;
  for (const plan& p : all_) {
    if (!p.how.is_spread()) d.seconds_on_one = std::min(d.seconds_on_one, p.predicted.seconds);
    d.alternatives.push_back({p.name, p.predicted.seconds, p.move_seconds, p.predicted.remote_bytes,
                              p.predicted.local_bytes, p.predicted.imbalance});
  }
  for (std::uint32_t n = 0; n < arrays_.size(); ++n) {
    array_decision& each = d.arrays.emplace_back();
    if (arrays_[n] == nullptr) continue;
    each.move_to = chosen.moves[of_pointer_[n]];
    each.use_replica = chosen.replicated[of_pointer_[n]];
  }
  const double factor = d.seconds_on_one / std::max(d.seconds, 1e-12);
  const plan* const other = d.is_spread() ? nullptr : fastest(all_, [](const plan& p) { return p.how.is_spread(); });
  if (!kernel.obstacle().empty()) {
    d.reason = kernel.obstacle();
  } else if (d.is_spread()) {
    d.reason =
        fmt::format("{}: {:.1f} % of its bytes are remote, predicted {:.2f} times as fast as one device{}",
                    words_of(d.how), 100 * chosen.predicted.remote_share(), factor, replicas_in_words(d, kernel));
  } else if (other == nullptr) {
    d.reason = "too few blocks for all devices";
  } else if (d.seconds < 4 * machine_.launch_seconds * machine_.devices) {
    d.reason = fmt::format("short: predicted {:.1f} us", d.seconds * 1e6);
  } else {
    d.reason = fmt::format("{} would leave {:.0f} % of its bytes remote, predicted {:.2f} times as fast as one device",
                           words_of(other->how), 100 * other->predicted.remote_share(),
                           d.seconds_on_one / other->predicted.seconds);
  }
  return d;
}

/// Whether arrays get other homes, beside replicas.
bool gives_homes(const decision& d) {
  return std::any_of(d.arrays.begin(), d.arrays.end(), [](const array_decision& a) {
    return a.move_to.how != placement::kind::stay && a.move_to.how != placement::kind::replicated;
  });
}

bool uses_copies(const decision& d) {
  return std::any_of(d.arrays.begin(), d.arrays.end(), [](const array_decision& a) { return a.use_replica; });
}

void append(std::string& key, const void* bytes, std::size_t count) {
  key.append(static_cast<const char*>(bytes), count);
}

}  // namespace

// The decisions for one state of the arrays. A program that writes an array between launches goes back and forth
// between two of them.
struct planner::outlook {
  std::vector<std::uint64_t> versions;  // of the arrays
  decision stay, move;                  // without and with moves of arrays
  double loss = 0;                      // of a launch that stays; 0: the arrays lie well
  double price = 0;                     // of the move
  double stake = 0;                     // seconds that a launch gains because its arrays lie well
};

struct planner::account {
  key name;
  const kernel_model* kernel = nullptr;
  std::vector<std::uint64_t> addresses;  // of the arrays
  std::deque<outlook> outlooks;          // the latest first
  double lost = 0;                       // by launches since the arrays lie where they do
  bool asked = false;                    // the last decision was to move arrays to other homes
  bool has_copies = false;               // made for these launches, and valid at the last one
  double uses = 0;                       // launches since they were made
  double uses_expected = std::numeric_limits<double>::infinity();  // of copies, before they are outdated
};

planner::planner(const machine& m, const sample_size& size) : machine_(m), size_(size) {}
planner::~planner() = default;

void planner::make_key(const kernel_model& kernel, const launch& l, std::span<const allocation* const> arrays) {
  key_.clear();
  const auto which = reinterpret_cast<std::uintptr_t>(&kernel);
  append(key_, &which, sizeof(std::uintptr_t));
  append(key_, l.grid.data(), sizeof l.grid);
  append(key_, l.block.data(), sizeof l.block);
  const auto* const parameters = static_cast<const char*>(l.parameters);
  for (const kernel_model::bytes& b : kernel.decisive_parameters())
    if (b.offset + b.size <= l.parameter_bytes) append(key_, parameters + b.offset, b.size);
  for (std::size_t n = 0; n < arrays.size(); ++n) {
    append(key_, parameters + kernel.pointers()[n].offset, sizeof(std::uint64_t));
    const std::uint64_t address = arrays[n] == nullptr ? 0 : arrays[n]->address;
    append(key_, &address, sizeof address);
  }
}

const decision& planner::decide(const kernel_model& kernel, const launch& l,
                                std::span<const allocation* const> arrays) {
  make_key(kernel, l, arrays);
  auto found = accounts_.find(key_);
  if (found == accounts_.end()) {
    if (accounts_.size() >= most_accounts) {
      unhappy_.clear();
      accounts_.clear();
    }
    found = accounts_.emplace(key_, std::make_unique<account>()).first;
    found->second->name = key_;
    found->second->kernel = &kernel;
  }
  account& a = *found->second;
  outlook* now = &outlook_of(a, kernel, l, arrays);
  if (count_uses(a, *now)) now = &outlook_of(a, kernel, l, arrays);
  settle(a, *now);
  a.asked = false;
  if (now->loss <= 0) return now->stay;
  a.lost += now->loss;
  if (a.lost < now->price) return now->stay;
  a.lost = 0;
  a.asked = gives_homes(now->move);
  a.has_copies = uses_copies(now->move);
  a.uses = 1;
  return now->move;
}

// Arrays that programs write between launches outdate their replicas, which then cost each launch its share of a copy.
// Returns whether the decisions have to be made again.
bool planner::count_uses(account& a, const outlook& now) {
  if (!a.has_copies) return false;
  if (uses_copies(now.stay)) return ++a.uses, false;
  a.has_copies = false;
  if (std::exchange(a.uses_expected, a.uses) == a.uses) return false;
  forget(a);
  a.outlooks.clear();
  return true;
}

planner::outlook& planner::outlook_of(account& of, const kernel_model& kernel, const launch& l,
                                      std::span<const allocation* const> arrays) {
  const auto is_now = [&](const outlook& o) {
    for (std::size_t n = 0; n < arrays.size(); ++n)
      if (o.versions[n] != (arrays[n] == nullptr ? 0 : arrays[n]->version)) return false;
    return true;
  };
  if (!of.outlooks.empty() && is_now(of.outlooks.front())) {
    // The arrays have other homes after a move; if not, it failed.
    if (of.asked) of.outlooks.front().loss = 0;
    return of.outlooks.front();
  }
  of.asked = false;
  forget(of);
  auto found = std::find_if(of.outlooks.begin(), of.outlooks.end(), is_now);
  if (found == of.outlooks.end()) {
    if (of.outlooks.size() == most_outlooks) of.outlooks.pop_back();
    of.outlooks.push_front(look_at(kernel, l, arrays, of.uses_expected));
  } else {
    std::rotate(of.outlooks.begin(), found, found + 1);
  }
  for (const allocation* const a : arrays)
    if (a != nullptr && std::find(of.addresses.begin(), of.addresses.end(), a->address) == of.addresses.end())
      of.addresses.push_back(a->address);
  if (of.outlooks.front().loss > 0)
    for (const std::uint64_t address : of.addresses) unhappy_[address].push_back(&of);
  return of.outlooks.front();
}

// A launch whose arrays lie well speaks against moving them.
void planner::settle(const account& of, const outlook& now) {
  if (now.stake <= 0) return;
  for (const std::uint64_t address : of.addresses) {
    const auto others = unhappy_.find(address);
    if (others == unhappy_.end()) continue;
    for (account* const other : others->second) other->lost = std::max(0.0, other->lost - now.stake);
  }
}

void planner::forget(account& a) {
  for (auto& [address, wanting] : unhappy_) std::erase(wanting, &a);
  a.addresses.clear();
}

planner::outlook planner::look_at(const kernel_model& kernel, const launch& l,
                                  std::span<const allocation* const> arrays, double launches_of_a_copy) const {
  outlook result;
  for (const allocation* const a : arrays) result.versions.push_back(a == nullptr ? 0 : a->version);
  const comparison_of_plans plans(kernel, l, arrays, machine_, size_, launches_of_a_copy);
  const plan* const now = fastest(plans.all(), [](const plan& p) { return !moves_arrays(p); });
  const plan* wished = fastest(plans.all(), [](const plan&) { return true; });
  const bool pays = moves_arrays(*wished) && wished->seconds < worth_while * now->seconds;
  if (!pays) wished = with_copies(plans.all(), *now);
  result.stay = plans.decision_for(*now, kernel);
  if (pays || wished != now) {
    result.move = plans.decision_for(*wished, kernel);
    result.loss = std::max(now->seconds - wished->seconds, (1 - worth_while) * now->seconds);
    result.price = wished->move_seconds;
  } else {
    result.stake = std::max(0.0, plans.seconds_elsewhere(now->how) - now->predicted.seconds);
  }
  return result;
}

void planner::forget(std::uint64_t address) {
  std::erase_if(accounts_, [&](const auto& entry) {
    account& a = *entry.second;
    if (std::find(a.addresses.begin(), a.addresses.end(), address) == a.addresses.end()) return false;
    forget(a);
    return true;
  });
  unhappy_.erase(address);
}

void planner::forget(const kernel_model& kernel) {
  std::erase_if(accounts_, [&](const auto& entry) {
    if (entry.second->kernel != &kernel) return false;
    forget(*entry.second);
    return true;
  });
}

placement planner::first_place(std::uint64_t bytes, std::uint64_t granule) const {
  constexpr std::uint64_t granules_of_each = 4;
  placement p;
  p.how = placement::kind::one;
  if (machine_.devices == 1 || bytes < granules_of_each * machine_.devices * granule) return p;
  p.how = placement::kind::parts;
  const std::uint64_t granules = (bytes + granule - 1) / granule;
  for (std::uint32_t d = 0; d <= machine_.devices; ++d) p.bounds.push_back(granules * d / machine_.devices * granule);
  return p;
}

}  // namespace hpe::spread
