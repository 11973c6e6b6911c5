#pragma once

/// Tracks which threads are queuing device work, for one moment in which that matters: when the host first touches
/// device memory, work that hooks let through unnoticed must be queued before hpe waits for the devices. That moment
/// pays the cost (membarrier(2)); a thread that queues pays a few plain stores. Also counts how much work each thread
/// has queued and how much of it is done, so that hpe need not wait when the program has already waited.

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hpe::cuda_hooks {

/// Stands for the stream of work whose stream is not known; no wait for a single stream covers it.
inline CUstream unknown_stream() noexcept {
  static constexpr std::uintptr_t no_address = ~std::uintptr_t{0};
  return reinterpret_cast<CUstream>(no_address);  // NOLINT(performance-no-int-to-ptr): a name, never followed
}

class queuing_threads {
 public:
  /// The record of one thread. Reused after the thread's end, and never destroyed.
  struct place {
    std::atomic<bool> queuing{false};
    std::atomic<bool> taken{true};
    place* next = nullptr;
    // Pieces of work; the owning thread increments `queued` after it has queued one.
    std::atomic<std::uint64_t> queued{0};
    std::atomic<std::uint64_t> elsewhere{0};  ///< pieces queued before the first of those on `stream`
    std::atomic<CUstream> stream{nullptr};    ///< the stream of the last pieces
    std::atomic<std::uint64_t> done{0};       ///< pieces known to be done
  };

  /// The calling thread's record.
  static place& mine() noexcept {
    place* const found = of_this_thread;
    return found != nullptr ? *found : take_place();
  }

  static void enter(place& p) noexcept {
    p.queuing.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the barrier in wait_until_none is the counterpart
  }
  static void leave(place& p) noexcept { p.queuing.store(false, std::memory_order_release); }
  /// The calling thread has queued a piece of work on a stream. To be called after the driver's call.
  static void count(place& p, CUstream stream) noexcept {
    const std::uint64_t before = p.queued.load(std::memory_order_relaxed);
    if (p.stream.load(std::memory_order_relaxed) != stream) {
      p.elsewhere.store(before, std::memory_order_relaxed);
      p.stream.store(stream, std::memory_order_release);
    }
    p.queued.store(before + 1, std::memory_order_release);
  }

  /// While an object exists, the calling thread is queuing a piece of work.
  class visit {
   public:
    explicit visit(CUstream stream) noexcept : here_(mine()), stream_(stream) { enter(here_); }
    ~visit() {
      count(here_, stream_);
      leave(here_);
    }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;

   private:
    place& here_;
    CUstream stream_;
  };

  /// Must succeed once before wait_until_none(). Returns false if the kernel has no such barrier. In a process with
  /// several threads the first call takes milliseconds.
  static bool prepare() noexcept;

  /// On return, every thread that is queuing work has seen the caller's earlier writes, or is no longer queuing.
  static void wait_until_none() noexcept;

  /// The work that all threads have queued so far. A hook of a wait makes one before the driver's call, and calls
  /// done() after it.
  class queued_so_far {
   public:
    /// All work; or the work that a wait for one stream covers: that of threads which have no other work in progress.
    queued_so_far() noexcept;
    explicit queued_so_far(CUstream stream) noexcept;
    void done() const noexcept;

   private:
    struct part {
      place* of;
      std::uint64_t queued;
    };
    static constexpr std::size_t most = 64;  // threads; a later wait covers the work of others
    std::array<part, most> parts_;
    std::size_t count_ = 0;
  };
  /// Whether all work that the program has queued is known to be done.
  [[nodiscard]] static bool all_done() noexcept;
  /// To be called before anybody asks: until then, hooks of waits need not make a queued_so_far.
  static void watch() noexcept { somebody_asks.store(true, std::memory_order_relaxed); }
  [[nodiscard]] static bool watched() noexcept { return somebody_asks.load(std::memory_order_relaxed); }

 private:
  friend struct place_holder;
  static place& take_place() noexcept;

  inline static constinit std::atomic<bool> somebody_asks{false};

  // The library is preloaded, so its few bytes of thread-local storage can be accessed without a call.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local place* of_this_thread;
};

}  // namespace hpe::cuda_hooks
