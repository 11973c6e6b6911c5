#pragma once

#include <algorithm>
#include <ctime>
#include <functional>

namespace hpe::spread {

/// The time that launches may spend on one kind of work, as a fraction of the time since the first launch. All times
/// are in seconds; the caller passes the current time. For one thread at a time.
class time_budget {
 public:
  /// A share of 0 allows no time at all.
  explicit time_budget(double share) : share_(share) {}

  /// Call this at the first launch; the time is counted from there.
  void begin(double now) {
    if (!has_begun_) began_ = now;
    has_begun_ = true;
  }
  /// Whether work that takes about `seconds` may be done now. The time spent may exceed the share by `allowance`
  /// seconds.
  [[nodiscard]] bool allows(double seconds, double now, double allowance = 0) const {
    return has_begun_ && spent_ + seconds <= allowance + share_ * (now - began_);
  }
  /// Call this when work has been done, or when the caller has decided to do work without a call of allows().
  void spend(double seconds) { spent_ += seconds; }
  [[nodiscard]] double spent() const { return spent_; }

 private:
  double share_, began_ = 0, spent_ = 0;
  bool has_begun_ = false;
};

/// Measures the processor time of the calling thread, which is less than the elapsed time if the thread does not run
/// all the time.
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
