#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "apps/command_line/report.h"
#include "hpe/hpe.hpp"

namespace hpe::sparse {

/// The median time of runs after the first, in seconds.
template <class Body>
double seconds(std::int64_t repeats, const Body& body) {
  std::vector<double> times;
  for (std::int64_t i = 0; i < repeats + 1; ++i) {
    synchronize();
    const auto begin = std::chrono::steady_clock::now();
    body();
    synchronize();
    if (i > 0) times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return command_line::median(times);
}

}  // namespace hpe::sparse
