#pragma once

/// The measured times of launches of one kernel over the same arrays, spread and on one device.

#include <array>
#include <cstdint>

#include "runtime/spread/time_budget.h"

namespace hpe::spread {

enum class way : std::uint8_t { alone, spread };

/// A plan predicts whether a launch is faster on one device or spread over several (its way to run); the record says
/// which of the two was actually faster. Launches differ in their work, so the record stores the ratio of measured to
/// predicted time, and corrects the prediction of the next launch by this ratio. The slower way is no longer used,
/// except that at most 1 % of the launches' time is spent on trying it again. For one thread at a time.
class way_record {
 public:
  /// The predicted seconds of a launch, on one device and spread.
  struct prediction {
    double alone = 0, spread = 0;
    [[nodiscard]] double of(way w) const { return w == way::alone ? alone : spread; }
  };

  /// Call this when a launch with this prediction has taken `seconds`. Returns the seconds by which this launch, and
  /// the unmeasured launches before it, were faster than they would have been on one device. Returns 0 for the way
  /// `alone`, or if no launch on one device was measured.
  double took(way w, const prediction& p, double seconds);
  /// Returns how to run a launch that the plan would spread.
  [[nodiscard]] way choose(const prediction& p);
  /// Returns whether the next launch that runs in this way must be measured. All of the first launches are measured,
  /// and one in sixteen of the later ones.
  [[nodiscard]] bool is_due(way w);
  /// Returns whether too few launches in this way have been measured to judge it.
  [[nodiscard]] bool is_on_trial(way w) const { return count(w) < launches_that_tell; }
  /// Returns the seconds that a launch is expected to take: the predicted seconds, corrected by the measured launches
  /// of this way. Until a spread launch has been measured, predictions for spread launches are corrected like those for
  /// one device, because both kinds of launches do the same work.
  [[nodiscard]] double expected(way w, double predicted) const {
    const bool like_one = w == way::spread && count(w) == 0 && !is_on_trial(way::alone);
    return predicted * of(like_one ? way::alone : w).factor;
  }
  [[nodiscard]] double expected(way w, const prediction& p) const { return expected(w, p.of(w)); }
  /// Returns whether the slower way may be tried now for `seconds`. If it may, these seconds are counted as spent.
  [[nodiscard]] bool may_try(double seconds);
  [[nodiscard]] std::uint64_t count(way w) const { return of(w).count; }

 private:
  // The first launch of a way is slower than others, because code is loaded and arrays are copied.
  static constexpr std::uint64_t launches_that_tell = 2;
  struct measured {
    std::uint64_t count = 0;
    double factor = 1;              // measured time / predicted time; the latest launches have the most weight
    std::uint64_t passed_over = 0;  // launches since the last measured launch
  };
  [[nodiscard]] const measured& of(way w) const { return ways_[static_cast<std::size_t>(w)]; }

  std::array<measured, 2> ways_;
  double total_ = 0;  // seconds of all launches
  time_budget tries_{0.01};
};

}  // namespace hpe::spread
