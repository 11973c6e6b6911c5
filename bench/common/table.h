#pragma once

#include <string>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

/// The lines of the result table. A line that shows a timing also shows its spread: the values of the fastest and the
/// slowest repeat.
class table {
 public:
  explicit table(unsigned repeats) : repeats(repeats) {}

  /// Adds the rate, in GB/s, of moving `bytes` bytes in the time `time`.
  void rate(const std::string& what, std::size_t bytes, const timing& time);
  /// Adds a rate as above, and below it the ratio of this rate to the rate `of`, by share().
  void rate(const std::string& what, std::size_t bytes, const timing& time, double of, const std::string& of_what,
            double bar = 0);
  /// Adds, as detail of the line above, the ratio of the timing's rate to the rate `of` (GB/s).
  void share(const timing& time, std::size_t bytes, double of, const std::string& of_what, double bar = 0);
  /// Adds second / first, for timings of the same number of bytes; the spread is of the first timing.
  void ratio(const std::string& what, const timing& first, const timing& second, double bar = 0);
  /// Adds the time of one operation; `all` is the time of `count` operations. The bar is `most` seconds for one
  /// operation (0: no bar).
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
