#pragma once

/// A scenario, and the process that runs it with each failure in turn.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/injection.h"
#include "tests/sweep/world.h"

namespace sweep {

struct scenario {
  const char* name;
  const char* devices;  ///< HPE_DEVICES
  std::vector<std::pair<const char*, const char*>> variables;
  /// Prepares its objects, calls `arm`, and does the operations that are to fail.
  std::function<void(world&, const std::function<void()>& arm)> run;
  bool starts = false;  ///< the failure is in the start of the runtime
};

[[nodiscard]] std::span<const scenario> scenarios();
/// The scenarios with a second process.
[[nodiscard]] std::vector<scenario> sharing_scenarios();
/// The main function of the second process.
int other_process(const std::string& role);

struct sweep_of {
  const scenario* what = nullptr;
  failure kind = failure::none;
  order first = order::host_first;
  std::uint64_t k = 1;
  std::uint64_t stride = 1;
};

/// Runs in a separate process. Sends its findings to the driver, as lines:
///   at <k>             this run begins
///   finding <k> <text>
///   again <k>          the process cannot continue; another process continues with k
///   done <calls>       the number of calls; each has failed once
int run_sweep(const sweep_of& which, int report_to);

/// Runs one kind of failure of one scenario in such processes, and monitors them.
struct tally {
  std::uint64_t calls = 0;
  std::uint64_t failures = 0;  ///< injected
  std::uint64_t findings = 0;
  std::uint64_t hangs = 0;
  std::uint64_t crashes = 0;

  tally& operator+=(const tally& other);
};
[[nodiscard]] tally drive(const sweep_of& which, bool verbose);

}  // namespace sweep
