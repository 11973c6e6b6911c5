#pragma once

#include <algorithm>
#include <ctime>
#include <functional>

namespace hpe::spread {

/// Limits the time that launches spend on one kind of work, such as planning, to a fraction of the time since the first
/// launch. All times are in seconds; the caller passes the present time. Only one thread at a time may use an object.
class time_budget {
 public:
  /// `share` is the fraction; 0 allows no time except an allowance.
  explicit time_budget(double share) : share_(share) {}

  /// Call this at the first launch, which starts the clock. Later calls have no effect.
  void begin(double now) {
    if (!has_begun_) began_ = now;
    has_begun_ = true;
  }
  /// Returns whether work that takes about `seconds` is within the limit at time `now`. `allowance`: the seconds by
  /// which the total may exceed the fraction.
  [[nodiscard]] bool allows(double seconds, double now, double allowance = 0) const {
    return has_begun_ && spent_ + seconds <= allowance + share_ * (now - began_);
  }
  /// Call this after any such work, even without a call of allows().
  void spend(double seconds) { spent_ += seconds; }
  [[nodiscard]] double spent() const { return spent_; }

 private:
  double share_, began_ = 0, spent_ = 0;
  bool has_begun_ = false;
};

/// Measures the CPU time of the calling thread, or the time that the clock `time` shows if this is shorter. CPU time
/// does not include the time in which the thread does not run.
class stopwatch {
 public:
  explicit stopwatch(const std::function<double()>& time) : time_(time), begun_(time()), worked_(work()) {}
  [[nodiscard]] double seconds() const { return std::min(time_() - begun_, work() - worked_); }

 private:
  static double work() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  }
  const std::function<double()>& time_;
  const double begun_, worked_;
};

}  // namespace hpe::spread
