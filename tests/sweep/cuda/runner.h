#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/cuda/program.h"

namespace sweep {

/// The operations of a program, and the environment variables that are set when it starts.
struct scenario {
  std::string name;
  std::vector<std::pair<const char*, const char*>> variables;
  /// Prepares memory, calls `arm`, and makes the calls of which one will fail.
  std::function<void(program&, const std::function<void()>& arm)> run;
  bool starts = false;  ///< calls fail from the start of the driver to the end of the process
};

[[nodiscard]] std::span<const scenario> scenarios();

}  // namespace sweep
