#pragma once

/// The table and the charts of messages between two ranks.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

class figure {
 public:
  /// Adds the time of one message, one way: in microseconds up to 4 KiB, in GB/s above.
  void add(std::size_t bytes, const char* scheme, const timing& one_message);
  /// Adds a ratio as detail of the line added last. bar 0: none.
  void compare(const std::string& what, double ratio, double bar);

  /// Prints the table and returns the exit status. charts_file: the file for charts of latency and bandwidth; empty:
  /// none.
  [[nodiscard]] int finish(const std::string& title, const arguments& given, const std::string& charts_file) const;

 private:
  std::vector<result> results_;
  std::vector<line> latency_;
  std::vector<line> bandwidth_;
};

}  // namespace hpe::bench
