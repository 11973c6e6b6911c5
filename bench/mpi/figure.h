#pragma once

/// The table and the picture of messages between two ranks.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

class figure {
 public:
  /// What one message takes, one way. Messages of at most 4 KiB are reported in microseconds, others in GB/s.
  void add(std::size_t bytes, const char* scheme, const timing& one_message);
  /// A ratio that belongs to what was added last; bar 0: none is asked for.
  void compare(const std::string& what, double ratio, double bar);

  /// Reports the table and gives the exit status; charts_file: where latency and bandwidth go as charts;
  /// "": nowhere.
  [[nodiscard]] int finish(const std::string& title, const arguments& given, const std::string& charts_file) const;

 private:
  std::vector<result> results_;
  std::vector<line> latency_;
  std::vector<line> bandwidth_;
};

}  // namespace hpe::bench
