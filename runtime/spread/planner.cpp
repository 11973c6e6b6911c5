// An account belongs to launches that access the same memory: of one kernel, with the same shape, decisive parameters
// and allocations. It keeps the latest decisions. While its launches would run faster with their arrays elsewhere, it
// also counts the seconds that they have lost.

#include "runtime/spread/planner.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/spread/plans.h"

namespace hpe::spread {

namespace {

constexpr std::size_t most_accounts = 4096;  // beyond, all are forgotten
constexpr std::size_t most_outlooks = 4;  // of an account; beyond, the one that was not used for longest is forgotten

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
  const plan& now = plans.fastest_without_moves();
  const plan* wished = &plans.fastest();
  const bool pays = wished->moves_arrays() && wished->seconds < worth_while * now.seconds;
  if (!pays) wished = &plans.with_copies(now);
  result.stay = plans.decision_for(now, kernel);
  if (pays || wished != &now) {
    result.move = plans.decision_for(*wished, kernel);
    result.loss = std::max(now.seconds - wished->seconds, (1 - worth_while) * now.seconds);
    result.price = wished->move_seconds;
  } else {
    result.stake = std::max(0.0, plans.seconds_elsewhere(now.how) - now.predicted.seconds);
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
