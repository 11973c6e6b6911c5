#include "runtime/work/use_cycle.h"

#include <algorithm>
#include <limits>

namespace hpe::work {

namespace {

constexpr std::uint64_t places = 4 * use_cycle::most_steps;
// The period is chosen from so many of the latest steps. At least one of `share_of_period` must have come before at the
// distance of the period.
constexpr std::uint64_t observed_steps = 1024;
constexpr std::uint64_t share_of_period = 32;
constexpr std::uint64_t least_between_choices = 8;
constexpr std::uint64_t most_between_choices = 512;
// A prediction is true if its error is at most this part of the period. Predictions of uses within a smaller part of
// the period do not count, because memory that is used again so soon is not evicted.
constexpr std::uint64_t part_of_error = 32;
constexpr std::uint64_t part_that_counts = 8;
constexpr double first_trust = 0.5;
constexpr double predictions_in_trust = 64;

constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept {
  constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
  hash = (hash ^ value) * factor;
  return hash ^ hash >> 32;
}

}  // namespace

void use_cycle::allocate() {
  if (!places_.empty()) return;
  uses_.resize(most_uses);
  distances_.resize(observed_steps);
  sorted_.reserve(observed_steps);
  places_.resize(places);
  next_choice_ = 2 * least_between_choices;
}

// The list of a region's uses begins with uses that the ring still has.
void use_cycle::link(std::uint64_t number) noexcept {
  region_uses& of = regions_[uses_[number % most_uses].region];
  if (of.last == none) {
    of.first = number;
  } else {
    uses_[of.last % most_uses].next = number;
  }
  of.last = number;
}

std::uint64_t use_cycle::first_expected(region_uses& of, std::uint64_t least) const noexcept {
  while (of.first != none && uses_[of.first % most_uses].step + period_ < least) {
    if (of.first == of.last) return none;
    of.first = uses_[of.first % most_uses].next;
  }
  return of.first;
}

void use_cycle::judge(const region_uses& of) noexcept {
  if (period_ == 0 || of.expected == 0) return;
  const std::uint64_t before = uses_[of.last % most_uses].step;
  const std::uint64_t latest = std::max(of.expected, step_count_);
  if (before == step_count_ || (latest - before) * part_that_counts <= period_) return;
  const bool came_true = (latest - std::min(of.expected, step_count_)) * part_of_error <= period_;
  trust_ += ((came_true ? 1.0 : 0.0) - trust_) / predictions_in_trust;
}

void use_cycle::use(std::uint32_t region, coherence::byte_range bytes) {
  allocate();
  if (region >= regions_.size()) regions_.resize(region + std::size_t{1});
  region_uses& of = regions_[region];
  if (of.last != none) judge(of);
  region_use& added = uses_[use_count_ % most_uses];
  if (use_count_ >= most_uses) {
    region_uses& oldest = regions_[added.region];
    if (oldest.first == use_count_ - most_uses) oldest.first = added.next;
    if (oldest.first == none) oldest = {};
  }
  added = {region, bytes, step_count_, none};
  link(use_count_++);
  of.expected = 0;
  if (period_ != 0)
    if (const std::uint64_t next = first_expected(of, step_count_ + 1); next != none)
      of.expected = uses_[next % most_uses].step + period_;
  hash_ = mixed(mixed(mixed(hash_, region), bytes.begin), bytes.end);
}

// A single step often occurs several times in a period; two steps in a row rarely do.
void use_cycle::end_step() {
  allocate();
  const std::uint64_t now = step_count_++;
  const std::uint64_t hash = mixed(mixed(0, hash_before_), hash_);
  hash_before_ = hash_;
  hash_ = 0;
  place& seen = places_[hash % places];
  const bool is_known = seen.step != none && seen.hash == hash && now - seen.step <= most_steps;
  distances_[now % observed_steps] = is_known ? static_cast<std::uint32_t>(now - seen.step) : 0;
  seen = {hash, now};
  if (step_count_ >= next_choice_) choose_period();
}

// Chooses the distance that explains the most steps: the product of the distance and of the number of steps that came
// before at this distance. So the repetitions within a period, at short distances, do not hide the period.
void use_cycle::choose_period() {
  next_choice_ = step_count_ + std::clamp(step_count_ / 8, least_between_choices, most_between_choices);
  const std::uint64_t observed = std::min(step_count_, observed_steps);
  sorted_.assign(distances_.begin(), distances_.begin() + static_cast<std::ptrdiff_t>(observed));
  std::ranges::sort(sorted_);
  const std::uint64_t oldest_step = use_count_ <= most_uses ? 0 : uses_[use_count_ % most_uses].step + 1;
  std::uint64_t chosen = 0, most = 0;
  for (auto each = sorted_.begin(); each != sorted_.end();) {
    const auto end = std::upper_bound(each, sorted_.end(), *each);
    const std::uint64_t distance = *each;
    const auto count = static_cast<std::uint64_t>(end - each);
    each = end;
    if (count * share_of_period < observed || count * distance <= most || oldest_step + distance > step_count_)
      continue;
    chosen = distance;
    most = count * distance;
  }
  if (chosen == period_) return;
  // The lists of uses may begin too late for a longer period, and the expectations are those of the old one.
  std::ranges::fill(regions_, region_uses{});
  for (std::uint64_t n = use_count_ - std::min(use_count_, most_uses); n < use_count_; ++n) {
    uses_[n % most_uses].next = none;
    link(n);
  }
  period_ = chosen;
  trust_ = first_trust;
}

std::uint64_t use_cycle::steps_until_use(std::uint32_t region, coherence::byte_range bytes) {
  if (region >= regions_.size()) return 0;
  region_uses& of = regions_[region];
  for (std::uint64_t n = first_expected(of, step_count_); n != none; n = uses_[n % most_uses].next) {
    const region_use& each = uses_[n % most_uses];
    if (each.bytes.begin < bytes.end && bytes.begin < each.bytes.end) return each.step + period_ - step_count_ + 1;
  }
  return 0;
}

}  // namespace hpe::work
