#include "runtime/work/use_cycle.h"

#include <algorithm>
#include <span>
#include <tuple>

namespace hpe::work {

namespace {

// A single step may occur several times in a period, so the distance to its last occurrence may be shorter than the
// period. A sequence of this many steps rarely occurs several times in a period.
constexpr std::uint64_t steps_in_a_row = 8;
// This many equal steps are a cycle even if a whole period has not come again yet.
constexpr std::uint64_t enough_equal = 32;
constexpr std::uint64_t places = 4 * use_cycle::most_steps;

constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept {
  constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
  hash = (hash ^ value) * factor;
  return hash ^ hash >> 32;
}

}  // namespace

bool use_cycle::has(std::uint64_t number) const noexcept {
  return number < step_count_ && step_count_ - number <= most_steps &&
         use_count_ - steps_[number % most_steps].first_use <= most_uses;
}

bool use_cycle::is_known() const noexcept {
  return period_ != 0 && equal_ >= std::min(period_, enough_equal) && has(step_count_ - period_);
}

void use_cycle::allocate() {
  if (!steps_.empty()) return;
  uses_.resize(most_uses);
  places_.resize(places);
  cycle_.reserve(most_uses);
  same_.reserve(most_uses);
  steps_.resize(most_steps);
}

void use_cycle::use(std::uint32_t region, coherence::byte_range bytes) {
  allocate();
  uses_[use_count_++ % most_uses] = {region, bytes};
  hash_ = mixed(mixed(mixed(hash_, region), bytes.begin), bytes.end);
}

std::uint64_t use_cycle::hash_of_latest(std::uint64_t last) const noexcept {
  std::uint64_t hash = 0;
  for (std::uint64_t n = 0; n < steps_in_a_row; ++n) hash = mixed(hash, steps_[(last - n) % most_steps].hash);
  return hash;
}

void use_cycle::end_step() {
  allocate();
  const std::uint64_t now = step_count_++;
  steps_[now % most_steps] = {hash_, first_use_};
  hash_ = 0;
  first_use_ = use_count_;
  const bool is_equal =
      period_ != 0 && has(now - period_) && steps_[(now - period_) % most_steps].hash == steps_[now % most_steps].hash;
  if (is_equal) {
    ++equal_;
  } else {
    period_ = equal_ = 0;
    has_cycle_ = false;
  }
  if (now + 1 < steps_in_a_row) return;
  const std::uint64_t hash = hash_of_latest(now);
  place& seen = places_[hash % places];
  if (period_ == 0 && seen.hash == hash && has(seen.step)) {
    period_ = now - seen.step;
    equal_ = steps_in_a_row;
  }
  seen = {hash, now};
}

void use_cycle::find_uses() {
  cycle_.clear();
  for (std::uint64_t number = step_count_ - period_; number < step_count_; ++number) {
    const std::uint64_t end = number + 1 < step_count_ ? steps_[(number + 1) % most_steps].first_use : first_use_;
    for (std::uint64_t u = steps_[number % most_steps].first_use; u < end; ++u) {
      const region_bytes& each = uses_[u % most_uses];
      cycle_.push_back({each, number % period_});
    }
  }
  std::ranges::sort(cycle_, {}, [](const predicted& p) {
    return std::tuple(p.what.region, p.what.bytes.begin, p.what.bytes.end, p.phase);
  });
  same_.clear();
  for (std::size_t n = 0; n < cycle_.size(); ++n) {
    const region_bytes& what = cycle_[n].what;
    const bool has_region = !same_.empty() && same_.back().what.region == what.region;
    if (!has_region || same_.back().what.bytes != what.bytes)
      same_.push_back({what, std::max(what.bytes.end, has_region ? same_.back().furthest_end : 0), n, n});
    same_.back().last = n + 1;
  }
  has_cycle_ = true;
}

std::uint64_t use_cycle::steps_until_use(std::uint32_t region, coherence::byte_range bytes) {
  if (!has_cycle_) find_uses();
  const std::uint64_t next = step_count_ % period_;
  std::uint64_t least = 0;
  const auto behind = std::ranges::lower_bound(same_, std::tuple(region, bytes.end), {}, [](const same_uses& s) {
    return std::tuple(s.what.region, s.what.bytes.begin);
  });
  for (auto at = behind; at != same_.begin() && least != 1;) {
    --at;
    if (at->what.region != region || at->furthest_end <= bytes.begin) break;
    if (at->what.bytes.end <= bytes.begin) continue;
    const std::span uses(cycle_.begin() + static_cast<std::ptrdiff_t>(at->first), at->last - at->first);
    const auto found = std::ranges::lower_bound(uses, next, {}, &predicted::phase);
    const std::uint64_t phase = found != uses.end() ? found->phase : uses.front().phase;
    const std::uint64_t steps = (phase + period_ - next) % period_ + 1;
    if (least == 0 || steps < least) least = steps;
  }
  return least;
}

}  // namespace hpe::work
