#pragma once

/// Collects the times of messages between two ranks for a table and for charts.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

class figure {
 public:
  /// Adds the time of one message in one direction: in microseconds for messages of up to 4 KiB, and as a rate in GB/s
  /// for larger ones.
  void add(std::size_t bytes, const char* scheme, const timing& one_message);
  /// Adds a ratio as a sub-line of the last line. bar: the least ratio that meets the target; 0: no target.
  void compare(const std::string& what, double ratio, double bar);

  /// Prints the table and returns the exit status for main(). charts_file: the file to which the charts of latency and
  /// bandwidth are written; empty: no file.
  [[nodiscard]] int finish(const std::string& title, const arguments& given, const std::string& charts_file) const;

 private:
  std::vector<result> results_;
  std::vector<line> latency_;
  std::vector<line> bandwidth_;
};

}  // namespace hpe::bench
