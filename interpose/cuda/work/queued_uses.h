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

/// Which memory the unfinished work on each stream of the program may use, where launches tell that by their parameters
/// (HPE_SCOPE=args). So a call of MPI or libc need not wait for work that uses other memory. Thread safe.
class queued_uses {
 public:
  /// Addresses of device memory. A parameter of a kernel is a range of one byte, which stands for its allocation.
  struct range {
    CUdeviceptr begin = 0;
    CUdeviceptr end = 0;
  };

  /// Whether hooks have to note the work that they queue. Costs one load.
  [[nodiscard]] static bool kept() noexcept { return is_kept.load(std::memory_order_relaxed); }
  /// Lets hooks note their work from now on. All earlier work counts as work that may use any memory. The first call
  /// waits until threads that are queuing work have queued it.
  void keep();

  /// To be called after the driver has taken work on a stream: the work may use these ranges.
  void note(CUstream stream, std::span<const range> used) noexcept;
  /// The same for work that may use any memory.
  void note_any(CUstream stream) noexcept;

  /// Numbers the work noted so far. A wait asks before it begins, and calls done() when it is over.
  [[nodiscard]] std::uint64_t so_far() const noexcept { return noted_.load(std::memory_order_acquire); }
  /// All work up to a number is done, or all such work on one stream.
  void done(std::uint64_t number) noexcept;
  void done(CUstream stream, std::uint64_t number) noexcept;

  /// The streams with unfinished work that may use a range. Nothing if such work is on a stream that cannot be waited
  /// for alone: an unknown or ended one, or a thread's default stream.
  [[nodiscard]] std::optional<std::vector<CUstream>> streams_that_use(range memory) const;

  /// The program ends a stream; its work goes on. Waits until no other thread holds the streams.
  void ends(CUstream stream) noexcept;
  /// While the lock exists, no stream ends.
  [[nodiscard]] std::shared_lock<std::shared_mutex> hold_streams() const { return std::shared_lock(ends_); }

 private:
  struct use {
    range memory;
    std::uint64_t number = 0;
  };
  // Unfinished work on one stream.
  struct work {
    std::uint64_t last = 0;              // number of the last piece
    std::uint64_t last_of_anything = 0;  // number of the last piece that may use any memory; 0 if there is none
    std::vector<use> uses;
    void shrink();
    void drop(std::uint64_t number);
    [[nodiscard]] bool uses_any_of(range memory) const noexcept;
  };
  void add(CUstream stream, std::optional<std::span<const range>> used) noexcept;

  inline static constinit std::atomic<bool> is_kept{false};

  mutable std::shared_mutex ends_;
  mutable mutex mutex_;  // never held while the driver is called
  std::map<CUstream, work> streams_ HPE_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> noted_{0};
};

}  // namespace hpe::cuda_hooks
