#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

namespace hpe::command_line {

/// Shows the progress, the rate and the remaining time of long work: on a terminal in one line that changes, elsewhere
/// in a line every five seconds and at the end. Prints nothing if the work ends before the first line is due. The
/// destructor ends an open line, so that an error message begins a new one. Only one thread at a time may use an
/// object.
class progress {
 public:
  struct place {
    std::FILE* stream = stderr;
    bool terminal = false;
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };
  /// Writes to standard error.
  [[nodiscard]] static place standard_error();

  /// total: the number of units of work; unit: the name of a unit, in the singular. quiet: print nothing.
  progress(std::string unit, double total, bool quiet, place where = standard_error());
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// Sets the number of finished units, which may have a fraction. `what` names the current step, or is empty.
  void at(double done, const std::string& what = {});

  [[nodiscard]] double seconds() const;

 private:
  [[nodiscard]] std::string line(double done, const std::string& what) const;

  const std::string unit_;
  const double total_;
  const bool quiet_;
  const place where_;
  const std::chrono::steady_clock::time_point begin_;
  double told_ = 0;  ///< seconds from the start of the work to the last output
  bool open_ = false, ended_ = false;
};

/// Calls `run` once to warm up and then `repeats` times, and shows the progress. Calls `prepare` before each run.
/// Returns the median time of the `repeats` runs, in seconds. The time of a run ends when all work that the run queued
/// is complete; it does not include `prepare`.
[[nodiscard]] double median_seconds(
    std::int64_t repeats, bool quiet, const std::function<void()>& run, const std::function<void()>& prepare = [] {});

}  // namespace hpe::command_line
