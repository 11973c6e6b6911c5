#pragma once

#include <string>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

/// The lines of the result table. Each line of a timing has its spread: the values of the fastest and slowest repeat.
class table {
 public:
  explicit table(unsigned repeats) : repeats(repeats) {}

  /// Adds the rate of moving bytes in a time, in GB/s.
  void rate(const std::string& what, std::size_t bytes, const timing& time);
  /// Adds a rate, and below it its share() of another rate.
  void rate(const std::string& what, std::size_t bytes, const timing& time, double of, const std::string& of_what,
            double bar = 0);
  /// Adds, as detail of the line above, the ratio of the timing's rate to the rate `of`, in GB/s.
  void share(const timing& time, std::size_t bytes, double of, const std::string& of_what, double bar = 0);
  /// Adds second / first, for timings of the same number of bytes; the spread is of the first timing.
  void ratio(const std::string& what, const timing& first, const timing& second, double bar = 0);
  /// Adds the time of one of `count` operations; the bar is `most` seconds for each (0: no bar).
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
