#pragma once

/// The measured times of launches of one kernel over the same arrays, spread and on one device.

#include <array>
#include <cstdint>

#include "runtime/spread/time_budget.h"

namespace hpe::spread {

enum class launch_way : std::uint8_t { alone, spread };

/// A launch can run in two ways: on one device (`alone`) or spread over several devices (`spread`). A plan predicts
/// which way is faster; the record stores measured times to correct the prediction. Launches differ in their work, so
/// the record stores the ratio of measured to predicted time, and multiplies the prediction of the next launch by this
/// ratio. Launches then run in the faster way. Trials of the slower way take at most 1 % of the launches' time. Only
/// one thread at a time may use an object.
class way_record {
 public:
  /// The predicted seconds of a launch, on one device and spread, with the present placement of its arrays.
  struct prediction {
    double alone = 0, spread = 0;
    double alone_at_home = 0;  // on one device whose memory contains the arrays
    [[nodiscard]] double of(launch_way w) const { return w == launch_way::alone ? alone : spread; }
  };

  /// Call this when a launch with prediction `p` has taken `seconds`. Returns the estimated seconds that spreading has
  /// saved for this launch and for the unmeasured launches before it, compared with launches on one device whose memory
  /// contains the arrays. Returns 0 for the way `alone`, or if no launch on one device was measured.
  double took(launch_way w, const prediction& p, double seconds);
  /// Returns how to run a launch that the plan would spread. May return the slower way as a trial, and then counts the
  /// trial's expected seconds as spent.
  [[nodiscard]] launch_way choose(const prediction& p);
  /// Call this once for each launch that runs in this way. Returns whether the caller must measure the launch. This is
  /// the case for the first eight launches, and for one in sixteen of the later launches.
  [[nodiscard]] bool is_due(launch_way w);
  /// Returns whether too few launches of this way have been measured for a judgement. One launch on one device is
  /// enough if it took so long that the loading of its code took only a small part of the time.
  [[nodiscard]] bool is_on_trial(launch_way w) const {
    const bool is_enough = w == launch_way::alone && of(w).seconds >= long_enough;
    return count(w) < (is_enough ? 1 : launches_that_tell);
  }
  /// Returns the expected seconds of a launch: the predicted seconds, corrected by the measured launches of this way.
  /// Until a spread launch has been measured, the correction for one device also applies to spread launches (if it
  /// comes from at least two launches), because launches do the same work in both ways.
  [[nodiscard]] double expected(launch_way w, double predicted) const {
    const bool like_one = w == launch_way::spread && count(w) == 0 && !is_on_trial(launch_way::alone);
    return predicted * of(like_one ? launch_way::alone : w).factor;
  }
  [[nodiscard]] double expected(launch_way w, const prediction& p) const { return expected(w, p.of(w)); }
  /// Returns whether a trial of the slower way for `seconds` is within the limit. If the trial is within the limit,
  /// counts these seconds as spent.
  [[nodiscard]] bool may_try(double seconds);
  [[nodiscard]] std::uint64_t count(launch_way w) const { return of(w).count; }
  /// The measured time of launches on one device divided by the predicted time, as a power of four, at least 1. The
  /// value is 1 until enough launches have been measured, and for launches that are so short that most of the time is
  /// the start of the kernel.
  [[nodiscard]] double scale() const { return scale_; }

 private:
  // The first launch of a way is slower than later launches, because it loads code and copies arrays.
  static constexpr std::uint64_t launches_that_tell = 2;
  static constexpr double long_enough = 0.1;
  struct measured {
    std::uint64_t count = 0;
    double factor = 1;              // measured time / predicted time; the latest launches have the most weight
    double seconds = 0;             // the time of the latest measured launch
    std::uint64_t passed_over = 0;  // launches since the last measured launch
  };
  [[nodiscard]] const measured& of(launch_way w) const { return ways_[static_cast<std::size_t>(w)]; }

  std::array<measured, 2> ways_;
  double scale_ = 1;
  double total_ = 0;  // seconds of all launches
  time_budget tries_{0.01};
};

}  // namespace hpe::spread
