#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/gpu/work/call_watch.h"
#include "interpose/gpu/work/device_range.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// The copies of calls of MPI_Pack and MPI_Unpack that have returned before the device has made their copies.
/// Everything that can observe the difference first waits for these copies: the program's later device work, CPU code
/// that touches device memory, and hpe's own uses of the same bytes. Thread safe.
class left_copies {
 public:
  /// Whether copies are left. Costs one load.
  [[nodiscard]] static bool any() noexcept { return call_watch::has(call_watch::copies_left); }
  /// Whether a copy may be left: true until forbid() is called.
  [[nodiscard]] static bool are_allowed() noexcept { return !forbidden.load(std::memory_order_relaxed); }
  /// To be called when the program lets other processes or a network card access its device memory, before finish():
  /// hpe does not notice their accesses.
  static void forbid() noexcept { forbidden.store(true, std::memory_order_relaxed); }

  /// Adds the last copy of a queue, which uses these ranges. Returns whether no copy was left before. If the copy
  /// cannot be left, waits for it.
  bool add(const std::shared_ptr<interpose::copy_queue>& queue, const used_range& one, const used_range& other);
  /// Waits for all copies. Throws hpe::error if one has failed; no copy is left then. Throws std::bad_alloc if host
  /// memory is too short; the copies are left then.
  void finish();
  /// Waits for all copies if one of them writes bytes of `use`, or if one uses these bytes and `use` writes them.
  void finish_before(const used_range& use);
  /// Waits for all copies, if there are any. If that fails, logs a warning: "waiting for copies before <what>: ..."
  void finish_or_tell(const char* what) noexcept;

 private:
  void finish_locked() HPE_REQUIRES(mutex_);

  static constexpr std::size_t most = 1024;  // copies

  inline static constinit std::atomic<bool> forbidden{false};

  mutex mutex_;  // held during waits, so that all threads wait until the copies have ended
  std::vector<std::shared_ptr<interpose::copy_queue>> queues_ HPE_GUARDED_BY(mutex_);  // different queues
  std::vector<std::pair<used_range, used_range>> uses_ HPE_GUARDED_BY(mutex_);         // of each copy
};

}  // namespace hpe::cuda_hooks
