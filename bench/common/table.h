#pragma once

#include <string>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

/// The lines of the result. A ratio has the spread of what it is made of: fastest and slowest repeat, as ratios.
class table {
 public:
  explicit table(unsigned repeats) : repeats(repeats) {}

  /// Bytes in a time, as GB/s.
  void rate(const std::string& what, std::size_t bytes, const timing& time);
  /// The same, and beside it what part of another rate it is.
  void rate(const std::string& what, std::size_t bytes, const timing& time, double of, const std::string& of_what,
            double bar = 0);
  /// Below a line: what part of a rate, in GB/s, the time is.
  void share(const timing& time, std::size_t bytes, double of, const std::string& of_what, double bar = 0);
  /// How many times faster the first is; both moved as much.
  void ratio(const std::string& what, const timing& first, const timing& second, double bar = 0);
  /// A time for each of `count`, at most `most` seconds (0: no bar).
  void time(const std::string& what, const timing& all, std::size_t count = 1, double most = 0);
  /// A number and its unit.
  void number(const std::string& what, double value, const std::string& unit);

  const unsigned repeats;
  std::vector<result> lines;
};

[[nodiscard]] inline double rate_of(std::size_t bytes, double seconds) {
  return static_cast<double>(bytes) / seconds / 1e9;
}

}  // namespace hpe::bench
