#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/gpu/work/call_watch.h"
#include "interpose/gpu/work/device_range.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Copies that the program has requested by MPI_Pack or MPI_Unpack, and that the device makes only after the call has
/// returned. All code that could notice the delay first waits for the deferred copies: the program's later device work,
/// CPU code that touches device memory, and hpe's own uses of the same bytes. Thread safe.
class deferred_copies {
 public:
  /// Whether there are deferred copies. Costs one load.
  [[nodiscard]] static bool any() noexcept { return call_watch::has(call_watch::copies_deferred); }
  /// Whether copies may be deferred: true until forbid() is called.
  [[nodiscard]] static bool are_allowed() noexcept { return !forbidden.load(std::memory_order_relaxed); }
  /// To be called before finish() when the program lets other processes or a network card access its device memory,
  /// because hpe does not notice their accesses.
  static void forbid() noexcept { forbidden.store(true, std::memory_order_relaxed); }

  /// Adds the last copy of a queue. If the copy cannot be deferred, waits for it. Returns whether it is the only
  /// deferred copy.
  bool add(const std::shared_ptr<interpose::copy_queue>& queue, const copy_ranges& uses);
  /// Waits for all deferred copies. If a copy has failed, throws hpe::error; no copy is deferred afterwards. If host
  /// memory is too short, throws std::bad_alloc; the copies stay deferred.
  void finish();
  /// Waits for all deferred copies if one of them writes bytes of `use`, or if one of them uses these bytes and `use`
  /// writes them. after: a queue whose copies count as done; may be null.
  void finish_before(const used_range& use, const interpose::copy_queue* after = nullptr);
  /// Waits for all deferred copies, if there are any. If that fails, logs a warning: "waiting for copies before <what>:
  /// ..."
  void finish_or_tell(const char* what) noexcept;

 private:
  void finish_locked() HPE_REQUIRES(mutex_);

  static constexpr std::size_t most = 1024;  // copies

  inline static constinit std::atomic<bool> forbidden{false};

  mutex mutex_;  // held during waits, so that all threads wait until the copies have ended
  std::vector<std::shared_ptr<interpose::copy_queue>> queues_ HPE_GUARDED_BY(mutex_);  // different queues
  struct deferred {
    copy_ranges uses;
    const interpose::copy_queue* queue;
  };
  std::vector<deferred> copies_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
