#pragma once

/// Decides how a launch runs whose data does not fit into device memory, and whose grid can be cut: in parts that run
/// one after the other (cut_in_time), or as one piece that accesses the rest of its data in zero-copy memory. Which way
/// is faster depends on how often the kernel uses its data, and on the time that the device needs to map memory. A
/// program that repeats the launch tries both ways, and then uses the faster one. Thread-safe.

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/base/error.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/thread_safety.h"
#include "runtime/core/memory/allocator.h"

namespace hpe::core {

class zero_copy_trial {
 public:
  enum class way : std::uint8_t { parts, zero_copy };

  /// Launches of one kernel with the same grid that use the same allocations. Scalar parameters and the order of the
  /// pointers may differ.
  struct key {
    const void* kernel = nullptr;
    std::array<std::uint32_t, 3> grid{};
    std::vector<const void*> allocations;  // ascending

    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy finds a 0 in the comparison that the compiler generates
    friend auto operator<=>(const key&, const key&) = default;
  };
  [[nodiscard]] static key key_of(const void* kernel, const std::array<std::uint32_t, 3>& grid,
                                  std::span<const hpeAccess> accesses, const allocator& memory);

  /// Returns how the next launch of the key runs. Some calls wait for the work that uses the allocations (await), and
  /// measure the time since the last such wait, which includes all work of the program between these launches.
  [[nodiscard]] way choose(const key& of, function_ref<void()> await);
  [[nodiscard]] way choose(const key& of, const allocator& memory) {
    return choose(of, [&] {
      for (const void* const each : of.allocations) memory.await_users(each);
    });
  }
  /// Calls run() and returns its result if the next launch of the key uses zero-copy memory. Returns nullopt without a
  /// key, if the launch runs in parts, or if run() throws HPE_ERROR_OUT_OF_MEMORY; then later launches run in parts,
  /// too.
  template <class Run>
  [[nodiscard]] auto try_zero_copy(const std::optional<key>& of, const allocator& memory, Run&& run)
      -> std::optional<decltype(run())> {
    if (!of || choose(*of, memory) == way::parts) return std::nullopt;
    try {
      return run();
    } catch (const error& e) {
      if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
      stay_in_parts(of);
      return std::nullopt;
    }
  }
  /// The later launches of the key run in this way, for example because the other way is not possible.
  void decide(const key& of, way how);
  /// Ends the trial of a key, if there is one: zero-copy memory is not faster, or is impossible.
  void stay_in_parts(const std::optional<key>& of) {
    if (of) decide(*of, way::parts);
  }

 private:
  using clock = std::chrono::steady_clock;
  struct state {
    unsigned launches = 0;
    bool is_decided = false;
    way decided = way::parts;
    clock::time_point began;
    double seconds_in_parts = 0;  // for each launch
  };
  /// Records the time since the wait before. `number`: the launch that comes next.
  static void measure(state& its, unsigned number, double seconds);

  mutex mutex_;
  std::map<key, state> states_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::core
