#include "runtime/coherence/use_cycle.h"

#include <algorithm>

namespace hpe::coherence {

namespace {

constexpr std::uint64_t places = 4 * use_cycle::most_steps;
// The period is chosen from so many of the latest steps. At least `least_steps_of_period` of them, and one of
// `share_of_period`, must have come before at the distance of the period. If most steps come again at one distance of
// more than `longest_inner_period` steps, a longer period needs one of `share_beside_majority`.
constexpr std::uint64_t observed_steps = 1024;
constexpr std::uint64_t least_steps_of_period = 4;
constexpr std::uint64_t share_of_period = 32;
constexpr std::uint64_t share_beside_majority = 8;
constexpr std::uint64_t longest_inner_period = 16;
constexpr std::uint64_t between_choices = 64;
constexpr std::uint64_t between_choices_without_cycle = 16;
// A prediction is true if its error is at most this part of the period. Predictions of uses within a smaller part of
// the period do not count, because memory that is used again so soon is not evicted.
constexpr std::uint64_t part_of_error = 32;
constexpr std::uint64_t part_that_counts = 8;
constexpr double first_trust = 0.5;
constexpr double predictions_in_trust = 24;

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
  next_choice_ = between_choices_without_cycle;
}

// The list of a region's uses begins with uses that the ring still has.
void use_cycle::link(std::uint64_t number) noexcept {
  region_uses& of = regions_[uses_[number % most_uses].region];
  if (of.last == none) {
    of.first = of.ahead = number;
  } else {
    uses_[of.last % most_uses].next = number;
  }
  of.last = number;
}

std::uint64_t use_cycle::first_expected(std::uint64_t& from, std::uint64_t last, std::uint64_t least) const noexcept {
  while (from != none && uses_[from % most_uses].step + period_ < least) {
    if (from == last) return none;
    from = uses_[from % most_uses].next;
  }
  return from;
}

void use_cycle::judge(const region_uses& of) noexcept {
  if (period_ == 0 || of.expected == 0) return;
  const std::uint64_t before = uses_[of.last % most_uses].step;
  const std::uint64_t latest = std::max(of.expected, step_count_);
  if (before == step_count_ || (latest - before) * part_that_counts <= period_) return;
  const bool came_true = (latest - std::min(of.expected, step_count_)) * part_of_error <= period_;
  const bool is_known = period() != 0;
  trust_ += ((came_true ? 1.0 : 0.0) - trust_) / predictions_in_trust;
  if (is_known && period() == 0) observed_from_ = step_count_;  // the steps before belong to other work
}

void use_cycle::use(std::uint32_t region, byte_range bytes, bool reads) {
  allocate();
  if (region >= regions_.size()) regions_.resize(region + std::size_t{1});
  region_uses& of = regions_[region];
  if (of.last != none) judge(of);
  region_use& added = uses_[use_count_ % most_uses];
  if (use_count_ >= most_uses) {
    region_uses& oldest = regions_[added.region];
    if (oldest.first == use_count_ - most_uses) oldest.first = added.next;
    if (oldest.ahead == use_count_ - most_uses) oldest.ahead = added.next;
    if (oldest.first == none) oldest = {};
  }
  added = {region, bytes, reads, step_count_, none};
  link(use_count_++);
  if (period_ != 0) {
    // A prediction that came true early is not expected again.
    const bool is_early = of.expected > step_count_ && (of.expected - step_count_) * part_of_error <= period_;
    if (is_early && of.ahead != of.last && uses_[of.ahead % most_uses].step + period_ == of.expected)
      of.ahead = uses_[of.ahead % most_uses].next;
    const std::uint64_t next = first_expected(of.ahead, of.last, step_count_ + 1);
    of.expected = next != none ? uses_[next % most_uses].step + period_ : 0;
  }
  hash_ = mixed(mixed(mixed(hash_, region), bytes.begin), bytes.end);
}

// A single step often occurs several times in a period; two steps in a row rarely do.
void use_cycle::end_step() {
  allocate();
  const std::uint64_t now = step_count_++;
  const std::uint64_t hash = mixed(mixed(0, hash_before_), hash_);
  hash_before_ = hash_;
  hash_ = 0;
  hashed_step& seen = places_[hash % places];
  const bool is_known = seen.step != none && seen.hash == hash && now - seen.step <= most_steps;
  distances_[now % observed_steps] = is_known ? static_cast<std::uint32_t>(now - seen.step) : 0;
  seen = {hash, now};
  if (step_count_ >= next_choice_) choose_period();
}

// Chooses the distance that explains the most steps: the product of the distance and of the number of steps that came
// before at this distance. So the repetitions within a period, at short distances, do not hide the period. But if most
// steps come again at one distance, work that comes less often is not the period.
void use_cycle::choose_period() {
  next_choice_ = step_count_ + (period() != 0 ? between_choices : between_choices_without_cycle);
  const std::uint64_t observed = std::min(step_count_ - observed_from_, observed_steps);
  sorted_.clear();
  for (std::uint64_t s = step_count_ - observed; s < step_count_; ++s)
    sorted_.push_back(distances_[s % observed_steps]);
  std::ranges::sort(sorted_);
  const std::uint64_t oldest_step = use_count_ <= most_uses ? 0 : uses_[use_count_ % most_uses].step + 1;
  std::uint64_t chosen = 0, most = 0, share = share_of_period;
  for (auto each = sorted_.begin(); each != sorted_.end();) {
    const auto end = std::upper_bound(each, sorted_.end(), *each);
    const std::uint64_t distance = *each;
    const auto count = static_cast<std::uint64_t>(end - each);
    each = end;
    if (count < least_steps_of_period || count * share < observed || count * distance <= most) continue;
    if (oldest_step + distance > step_count_) continue;  // its uses are not all known
    chosen = distance;
    most = count * distance;
    if (count * 2 > observed && distance > longest_inner_period) share = share_beside_majority;
  }
  if (chosen != period_) set_period(chosen);
}

// The lists of uses may begin too late for a longer period, and the expectations are those of the old one.
void use_cycle::set_period(std::uint64_t chosen) noexcept {
  const bool is_near = std::max(chosen, period_) - std::min(chosen, period_) <= period_ / part_of_error;
  period_ = chosen;
  if (!is_near) trust_ = first_trust;
  if (period_ == 0) return;
  std::ranges::fill(regions_, region_uses{});
  const std::uint64_t oldest = use_count_ - std::min(use_count_, most_uses);
  const std::uint64_t least = step_count_ - std::min(step_count_, period_ + period_ / part_of_error);
  std::uint64_t number = use_count_;
  while (number > oldest && uses_[(number - 1) % most_uses].step >= least) --number;
  upcoming_ = number;
  for (; number < use_count_; ++number) {
    uses_[number % most_uses].next = none;
    link(number);
  }
}

std::optional<use_cycle::predicted_use> use_cycle::upcoming() noexcept {
  if (period_ == 0 || trust_ < trust_to_fetch) return std::nullopt;
  upcoming_ = std::max(upcoming_, use_count_ - std::min(use_count_, most_uses));
  while (upcoming_ < use_count_ && uses_[upcoming_ % most_uses].step + period_ < step_count_) ++upcoming_;
  if (upcoming_ >= use_count_) return std::nullopt;
  const region_use& of = uses_[upcoming_ % most_uses];
  return predicted_use{of.region, of.bytes, of.reads, of.step + period_ - step_count_ + 1};
}

// A use that is late by `slack` steps at most is due, unless some of its bytes were used since about the step in which
// it was expected: then it came early.
void use_cycle::find_next_uses(std::uint32_t region, std::span<next_use> ranges) noexcept {
  for (next_use& r : ranges) r.steps = r.due = 0;
  if (region >= regions_.size()) return;
  region_uses& of = regions_[region];
  const std::uint64_t slack = std::min(step_count_, period_ / part_of_error);
  std::size_t open = ranges.size();
  for (std::uint64_t n = first_expected(of.first, of.last, step_count_ - slack); n != none && open != 0;
       n = uses_[n % most_uses].next) {
    const region_use& each = uses_[n % most_uses];
    const std::uint64_t at = each.step + period_;
    auto r = std::ranges::upper_bound(ranges, each.bytes.begin, {}, [](const next_use& u) { return u.bytes.end; });
    for (; r != ranges.end() && r->bytes.begin < each.bytes.end; ++r) {
      const bool was_open = r->steps == 0 || r->due != 0;
      if (r->due != 0 && each.step + slack >= r->due) r->due = 0;
      if (at < step_count_)
        r->due = at;
      else if (r->steps == 0)
        r->steps = at - step_count_ + 1;
      if (was_open && r->steps != 0 && r->due == 0) --open;
    }
  }
  for (next_use& r : ranges)
    if (r.due != 0) r.steps = 1;
}

}  // namespace hpe::coherence
