// The recursion that produces the states [from, to) in descending order, where the state `from` is saved. If a slot is
// free, it advances from `from` to a state `middle`, saves this state, produces [middle, to), and then produces [from,
// middle). If no slot is free, it advances from `from` to each state.
#include "apps/rtm/keep/revolve.h"

#include <algorithm>

namespace hpe::rtm {

namespace {

/// Returns the number of states that can be produced with `checkpoints` checkpoints if each step is repeated at most
/// `repeats` times: the binomial coefficient checkpoints + repeats choose checkpoints, but at most 2^31. 0 for negative
/// numbers.
std::int64_t reachable(std::int64_t checkpoints, std::int64_t repeats) {
  constexpr std::int64_t enough = std::int64_t{1} << 31;
  if (checkpoints < 0 || repeats < 0) return 0;
  std::int64_t value = 1;
  for (std::int64_t i = 1; i <= std::min(checkpoints, repeats); ++i) {
    value = value * (std::max(checkpoints, repeats) + i) / i;
    if (value > enough) return enough;
  }
  return value;
}

/// Returns the smallest `repeats` with which reachable(checkpoints, repeats) is at least `count`.
std::int64_t repeats_for(std::int64_t count, std::int64_t checkpoints) {
  std::int64_t repeats = 0;
  while (reachable(checkpoints, repeats) < count) ++repeats;
  return repeats;
}

/// Returns the best distance from the first of `count` states to the next checkpoint.
std::int64_t distance(std::int64_t count, std::int64_t checkpoints) {
  const std::int64_t r = repeats_for(count, checkpoints);
  const std::int64_t best = std::min(reachable(checkpoints, r - 1), count - reachable(checkpoints - 1, r - 1));
  return std::clamp<std::int64_t>(best, 1, count - 1);
}

class planner {
 public:
  planner(std::int64_t count, std::int64_t checkpoints) {
    for (std::int64_t s = checkpoints - 1; s > 0; --s) free_.push_back(s);
    first_pass(count);
  }

  revolve_schedule result;

 private:
  using kind = revolve_action::kind;
  struct kept {
    std::int64_t number, slot;
  };

  /// Adds the checkpoints of the first pass, then produces the states between checkpoints, from the last checkpoint to
  /// the first.
  void first_pass(std::int64_t count) {
    std::vector<kept> all{{0, 0}};
    while (!free_.empty() && count - all.back().number > 1) {
      const std::int64_t here = all.back().number;
      all.push_back({here + distance(count - here, static_cast<std::int64_t>(free_.size()) + 1), free_.back()});
      free_.pop_back();
    }
    for (const kept& k : all) result.saves.push_back({kind::save, k.number, k.slot});
    for (std::int64_t end = count; !all.empty(); all.pop_back()) {
      give_back(all.back(), end);
      end = all.back().number;
      free_.push_back(all.back().slot);
    }
  }

  void give_back(kept from, std::int64_t to) {
    while (to - from.number > 1 && !free_.empty()) {
      const kept middle{from.number + distance(to - from.number, static_cast<std::int64_t>(free_.size()) + 1),
                        free_.back()};
      free_.pop_back();
      reach(from, middle.number);
      result.back.push_back({kind::save, middle.number, middle.slot});
      give_back(middle, to);
      free_.push_back(middle.slot);
      to = middle.number;
    }
    for (std::int64_t n = to - 1; n >= from.number; --n) {
      reach(from, n);
      result.back.push_back({kind::use, n});
    }
  }

  void reach(const kept& from, std::int64_t number) {
    result.back.push_back({kind::load, from.number, from.slot});
    if (number > from.number) result.back.push_back({kind::advance, number});
  }

  std::vector<std::int64_t> free_;
};

}  // namespace

std::int64_t revolve_schedule::repeated() const {
  std::int64_t steps = 0, here = 0;
  for (const revolve_action& a : back) {
    if (a.what == revolve_action::kind::advance) steps += a.number - here;
    here = a.number;
  }
  return steps;
}

revolve_schedule revolve(std::int64_t count, std::int64_t checkpoints) { return planner(count, checkpoints).result; }

}  // namespace hpe::rtm
