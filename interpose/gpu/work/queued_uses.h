#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Records, for each stream of the program, which memory the unfinished work on the stream may use, according to the
/// parameters of launches (HPE_SCOPE=args). With these records, a call of MPI or libc does not have to wait for work
/// that uses other memory. Thread safe.
class queued_uses {
 public:
  /// A range of addresses in device memory. A range of one byte comes from a parameter of a kernel and represents the
  /// whole allocation that contains the byte.
  struct queued_range {
    CUdeviceptr begin = 0;
    CUdeviceptr end = 0;
  };

  /// Whether keep() has been called: if so, hooks must record the work that they queue. Costs one load.
  [[nodiscard]] static bool kept() noexcept { return is_kept.load(std::memory_order_relaxed); }
  /// Requests that hooks record the work that they queue after this call. All earlier work counts as work that may use
  /// any memory. The first call waits until every thread that is queuing work has queued it.
  void keep();

  /// To be called after the driver has queued, on a stream, work that may use these ranges.
  void note(CUstream stream, std::span<const queued_range> used) noexcept;
  /// Like note, for work that may use any memory.
  void note_any(CUstream stream) noexcept;

  /// Returns the number of the piece of work that was recorded last. A thread that waits for work reads this number
  /// before the wait, and passes it to done() after the wait.
  [[nodiscard]] std::uint64_t so_far() const noexcept { return noted_.load(std::memory_order_acquire); }
  /// Record that all work up to a number is done, on all streams or on one stream.
  void done(std::uint64_t number) noexcept;
  void done(CUstream stream, std::uint64_t number) noexcept;

  /// Returns the streams whose unfinished work may use a range. Returns nullopt if some of this work is on a stream for
  /// which a wait is impossible: an unknown stream, a destroyed stream, or the default stream of a thread.
  [[nodiscard]] std::optional<std::vector<CUstream>> streams_that_use(queued_range memory) const;

  /// To be called before the program destroys a stream; the work on the stream continues. Waits until no thread holds a
  /// lock of hold_streams().
  void ends(CUstream stream) noexcept;
  /// Returns a lock. While the lock exists, the program's threads wait in ends() and destroy no stream.
  [[nodiscard]] std::shared_lock<std::shared_mutex> hold_streams() const { return std::shared_lock(ends_); }

 private:
  struct noted_use {
    queued_range memory;
    std::uint64_t number = 0;
  };
  // The unfinished work on one stream.
  struct unfinished_work {
    std::uint64_t last = 0;              // the number of the last piece of work
    std::uint64_t last_of_anything = 0;  // the number of the last piece that may use any memory, or 0
    std::vector<noted_use> uses;
    void shrink();
    void drop(std::uint64_t number);
    [[nodiscard]] bool uses_any_of(queued_range memory) const noexcept;
  };
  void add(CUstream stream, std::optional<std::span<const queued_range>> used) noexcept;

  inline static constinit std::atomic<bool> is_kept{false};

  mutable std::shared_mutex ends_;
  mutable mutex mutex_;  // not held while hpe calls the driver
  std::map<CUstream, unfinished_work> streams_ HPE_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> noted_{0};
};

}  // namespace hpe::cuda_hooks
