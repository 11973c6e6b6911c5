#pragma once

/// The table and the charts of the times of messages between two ranks.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

class figure {
 public:
  /// Adds the time of one message in one direction: in microseconds for up to 4 KiB, as a rate in GB/s for more.
  void add(std::size_t bytes, const char* scheme, const timing& one_message);
  /// Adds a ratio as a detail of the last line. bar: the least ratio that is required; 0: none.
  void compare(const std::string& what, double ratio, double bar);

  /// Prints the table and returns the exit status. charts_file: the file for the charts of latency and bandwidth;
  /// empty: no file.
  [[nodiscard]] int finish(const std::string& title, const arguments& given, const std::string& charts_file) const;

 private:
  std::vector<result> results_;
  std::vector<line> latency_;
  std::vector<line> bandwidth_;
};

}  // namespace hpe::bench
