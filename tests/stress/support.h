#pragma once

/// Support for the stress tests: kernels, random allocations, runs of several threads with a watchdog, and a comparison
/// of the runtime's state before and after a run.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/stress/kernels.h"

namespace stress {

/// Returns the path of the module: the value of HPE_STRESS_KERNELS if the tests were moved, otherwise the path at which
/// the module was built.
inline const char* stress_kernels_path() {
  const char* elsewhere = std::getenv("HPE_STRESS_KERNELS");
  return elsewhere != nullptr ? elsewhere : HPE_STRESS_KERNELS;
}

/// The kernels of kernels.cpp, loaded at the first call.
struct loaded_kernels {
  hpe::module module{stress_kernels_path()};
  hpe::kernel<pattern_parameters> pattern{module, "pattern"};
  hpe::kernel<add_bytes_parameters> add_bytes{module, "add_bytes"};
  hpe::kernel<scatter_parameters> scatter{module, "scatter"};
  hpe::kernel<combine_parameters> combine{module, "combine"};
  hpe::kernel<digest_parameters> digest{module, "digest"};
};
const loaded_kernels& kernels();

/// Makes the random choices of one thread.
class dice {
 public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}

  /// Returns a number in [0, limit).
  std::uint64_t below(std::uint64_t limit) { return engine_() % limit; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::uint8_t byte() { return static_cast<std::uint8_t>(engine_()); }
  /// Returns a length in [1, most]; all orders of magnitude are about equally likely.
  std::uint64_t length(std::uint64_t most);
  /// Returns the microseconds that a kernel sleeps: usually 0.
  std::uint32_t delay() { return one_in(4) ? static_cast<std::uint32_t>(below(500)) : 0; }
  int device() { return static_cast<int>(below(static_cast<std::uint64_t>(hpe::device_count()))); }

 private:
  std::mt19937_64 engine_;
};

/// Allocates a random number of bytes, from 100 bytes to 8 MiB, in a random kind of memory, and returns the address.
std::uint8_t* allocate_anywhere(dice& random, std::size_t& size);

/// The state that the threads of a run share.
class run_state {
 public:
  [[nodiscard]] bool going_on() const { return !stop_.load(std::memory_order_relaxed); }
  void stop() { stop_ = true; }
  /// Records the first failure and ends the run.
  void fail(const std::string& what);
  void step_done() { steps_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t steps() const { return steps_.load(); }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> steps_{0};
};

/// The least number of steps of a run, also on a busy machine.
constexpr std::uint64_t fewest_steps = 100;

/// Runs `body` in several threads for HPE_STRESS_SECONDS (default: 3), and longer if the threads have not yet made
/// `fewest_steps` steps. Each thread gets its number and a seed derived from HPE_STRESS_SEED, which is printed. If no
/// thread makes a step for a minute, the process ends with a message.
void run_threads(unsigned count, run_state& state, const std::function<void(unsigned, std::uint64_t)>& body);

/// Waits for all queued work, and returns the bytes in use on each device.
std::vector<std::uint64_t> memory_in_use();

/// Whether no device has more bytes in use than before; prints the devices that have more. Fewer bytes are no error,
/// because other processes that use a GPU may have freed memory.
[[nodiscard]] bool no_more_in_use_than(const std::vector<std::uint64_t>& before);

}  // namespace stress
