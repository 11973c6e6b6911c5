#pragma once

#include <string>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

/// The lines of a benchmark's table of results. A line that shows a timing also shows its spread: the values of the
/// fastest and the slowest repeat.
class table {
 public:
  explicit table(unsigned repeats) : repeats(repeats) {}

  /// Adds the rate in GB/s at which `bytes` bytes were moved in the time `time`.
  void rate(const std::string& what, std::size_t bytes, const timing& time);
  /// Adds a rate as the function above does, and below it the line of share().
  void rate(const std::string& what, std::size_t bytes, const timing& time, double of, const std::string& of_what,
            double bar = 0);
  /// Adds a sub-line of the line above: the timing's rate divided by the rate `of` (GB/s). bar: the least ratio that
  /// meets the target; 0: no target.
  void share(const timing& time, std::size_t bytes, double of, const std::string& of_what, double bar = 0);
  /// Adds the ratio second / first of timings of the same number of bytes; the spread is that of the first timing. bar:
  /// as in share().
  void ratio(const std::string& what, const timing& first, const timing& second, double bar = 0);
  /// Adds the time of one operation, in microseconds. all: the time of `count` operations. most: the target, in seconds
  /// for one operation; 0: no target.
  void time(const std::string& what, const timing& all, std::size_t count = 1, double most = 0);
  /// Adds a number and its unit.
  void number(const std::string& what, double value, const std::string& unit);

  const unsigned repeats;
  std::vector<result> lines;
};

[[nodiscard]] inline double rate_of(std::size_t bytes, double seconds) {
  return static_cast<double>(bytes) / seconds / 1e9;
}

}  // namespace hpe::bench
