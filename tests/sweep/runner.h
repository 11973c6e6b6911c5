#pragma once

/// The scenarios of the runtime's core.

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "tests/sweep/sweep.h"
#include "tests/sweep/world.h"

namespace sweep {

struct scenario {
  const char* name;
  const char* devices;  ///< HPE_DEVICES
  std::vector<std::pair<const char*, const char*>> variables;
  /// Prepares objects, calls `arm`, and does the operations of which one will fail.
  std::function<void(world&, const std::function<void()>& arm)> run;
  bool starts = false;  ///< whether the failure is in the start of the runtime
};

[[nodiscard]] std::span<const scenario> scenarios();
/// Returns the scenarios with a second process.
[[nodiscard]] std::vector<scenario> sharing_scenarios();

}  // namespace sweep
