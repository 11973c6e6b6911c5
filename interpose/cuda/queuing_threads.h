#pragma once

/// Which threads are queuing device work of the program just now, for the one moment in which that matters: when the
/// host first touches device memory, work that was let through unseen has to be queued before the devices are waited
/// for. The cost is on that moment's side (membarrier(2)); a thread that queues pays a few plain stores. And how much
/// each thread has queued, of which how much is done, so that nobody waits for a program that has waited itself.

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hpe::cuda_hooks {

/// A stream that no wait for one stream covers: that of work whose stream is not known.
inline CUstream unknown_stream() noexcept {
  static constexpr std::uintptr_t no_address = ~std::uintptr_t{0};
  return reinterpret_cast<CUstream>(no_address);  // NOLINT(performance-no-int-to-ptr): a name, never followed
}

class queuing_threads {
 public:
  /// A place that belongs to one thread at a time, and is never destroyed.
  struct place {
    std::atomic<bool> queuing{false};
    std::atomic<bool> taken{true};
    place* next = nullptr;
    // Pieces of work, counted by its threads when they are queued (queued_so_far).
    std::atomic<std::uint64_t> queued{0};
    std::atomic<std::uint64_t> elsewhere{0};  ///< that many were queued before the first one of those on `stream`
    std::atomic<CUstream> stream{nullptr};    ///< of the last ones
    std::atomic<std::uint64_t> done{0};       ///< that many are known to be done
  };

  /// The calling thread's.
  static place& mine() noexcept {
    place* const found = of_this_thread;
    return found != nullptr ? *found : take_place();
  }

  static void enter(place& p) noexcept {
    p.queuing.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the other half is the barrier in wait_until_none
  }
  static void leave(place& p) noexcept { p.queuing.store(false, std::memory_order_release); }
  /// The calling thread has queued a piece of work on a stream: after the call of the driver.
  static void count(place& p, CUstream stream) noexcept {
    const std::uint64_t before = p.queued.load(std::memory_order_relaxed);
    if (p.stream.load(std::memory_order_relaxed) != stream) {
      p.elsewhere.store(before, std::memory_order_relaxed);
      p.stream.store(stream, std::memory_order_release);
    }
    p.queued.store(before + 1, std::memory_order_release);
  }

  /// The calling thread is queuing a piece of work while this lives.
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

  /// Has to succeed once before wait_until_none. False where the kernel has no such barrier. The first call takes
  /// milliseconds in a process that has several threads.
  static bool prepare() noexcept;

  /// After it, every thread that is queuing has seen what the caller wrote before, or is done.
  static void wait_until_none() noexcept;

  /// What has been queued so far, by all threads, and whether it is done. A wait for devices says so: it takes what is
  /// queued before it begins, and calls done() when the driver has come back.
  class queued_so_far {
   public:
    /// All of it; or what a wait for one stream covers: that of threads which have nothing else under way.
    queued_so_far() noexcept;
    explicit queued_so_far(CUstream stream) noexcept;
    void done() const noexcept;

   private:
    struct part {
      place* of;
      std::uint64_t queued;
    };
    static constexpr std::size_t most = 64;  // threads; the work of others is waited for once more
    std::array<part, most> parts_;
    std::size_t count_ = 0;
  };
  /// Whether all work that the program has queued is known to be done.
  [[nodiscard]] static bool all_done() noexcept;
  /// Nobody asks until then, and waits for devices need not say anything.
  static void watch() noexcept { somebody_asks.store(true, std::memory_order_relaxed); }
  [[nodiscard]] static bool watched() noexcept { return somebody_asks.load(std::memory_order_relaxed); }

 private:
  friend struct place_holder;
  static place& take_place() noexcept;

  inline static constinit std::atomic<bool> somebody_asks{false};

  // The library is preloaded, so that its few bytes per thread are at hand without a call.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local place* of_this_thread;
};

}  // namespace hpe::cuda_hooks
