#pragma once

/// The processes of a sweep: the call that fails in a scenario, and the results. A program that links driver.cpp and
/// main.cpp provides scenarios; the sweep runs each scenario with each failure in turn.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/sweep/injection.h"

namespace sweep {

/// Whether the host's view of memory or the devices' view is checked first.
enum class order : std::uint8_t { host_first, devices_first };

struct sweep_of {
  const char* scenario = nullptr;
  failure kind = failure::none;
  order first = order::host_first;
  std::uint64_t k = 1;  ///< the first call that fails
  std::uint64_t stride = 1;
  const std::vector<std::uint64_t>* calls = nullptr;  ///< the calls that fail, in ascending order; null: see `stride`

  /// A number that no call reaches.
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max() / 2;
  /// Returns the call that fails next after call number `at`.
  [[nodiscard]] std::uint64_t after(std::uint64_t at) const {
    if (calls == nullptr) return at + stride;
    const auto next = std::ranges::upper_bound(*calls, at);
    return next == calls->end() ? none : *next;
  }
};

/// The numbers of a sweep.
struct tally {
  std::uint64_t calls = 0;     ///< calls that the scenario makes if none fails
  std::uint64_t failures = 0;  ///< injected failures
  std::uint64_t findings = 0;
  std::uint64_t hangs = 0;
  std::uint64_t crashes = 0;

  tally& operator+=(const tally& other);
};
/// Runs one kind of failure of one scenario in other processes, monitors these processes, and prints what they find.
/// which_calls: replaces which.stride. Returns the numbers of the sweep.
struct chosen_calls {
  std::uint64_t most = 0;  ///< if not 0, about this many calls fail, evenly distributed
  bool by_stack = false;   ///< the first and the last call with each call stack fail
};
[[nodiscard]] tally drive(const sweep_of& which, const chosen_calls& which_calls, bool verbose);

// ---- functions that the program provides

struct subject {
  const char* name;
  bool starts = false;  ///< whether each failure needs a new process
};
[[nodiscard]] std::vector<subject> subjects();
[[nodiscard]] std::span<const failure> kinds_of_failure();
[[nodiscard]] std::span<const order> orders();

/// Runs a sweep in a separate process, and sends the findings to the driver by a reporter.
int run_sweep(const sweep_of& which, int report_to);
/// The main function of a scenario's other process.
int other_process(const std::string& role);

/// Writes lines to the driver:
///   at <k>             this run begins
///   finding <k> <text>
///   again <k>          the process cannot continue; another process continues with k
///   done <calls> no call failed in this run, which made this number of calls: the sweep is complete
class reporter {
 public:
  explicit reporter(int to) : to_(to) {}

  [[nodiscard]] int to() const noexcept { return to_; }
  void at(std::uint64_t k) const { line("at " + std::to_string(k)); }
  void finding(std::uint64_t k, const std::string& text) const {
    line("finding " + std::to_string(k) + " " + injected().what() + ": " + text);
  }
  void again(std::uint64_t k) const { line("again " + std::to_string(k)); }
  void done(std::uint64_t calls) const { line("done " + std::to_string(calls)); }

 private:
  void line(const std::string& text) const;

  int to_;
};

}  // namespace sweep
