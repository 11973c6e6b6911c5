#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/cuda/program.h"

namespace sweep {

/// What a program does, and how it was started.
struct scenario {
  std::string name;
  std::vector<std::pair<const char*, const char*>> variables;
  /// Prepares its memory, calls `arm`, and makes the calls that are to fail.
  std::function<void(program&, const std::function<void()>& arm)> run;
  bool starts = false;  ///< calls fail from the start of the driver to the end of the process
};

[[nodiscard]] std::span<const scenario> scenarios();

}  // namespace sweep
