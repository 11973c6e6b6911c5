#pragma once

/// Records which threads are queuing device work. hpe needs this record when CPU code first touches device memory: work
/// that threads began to queue earlier was not recorded by the hooks, so hpe waits until the threads have queued this
/// work, and then waits for the devices. Because the waiting thread calls membarrier(2), threads that queue work need
/// only a few plain stores. This file also counts how much work each thread has queued and how much of this work is
/// done, so that hpe does not wait again for work for which the program has already waited.

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hpe::cuda_hooks {

/// Represents the stream of work whose stream is not known. No wait for a single stream covers this work.
inline CUstream unknown_stream() noexcept {
  static constexpr std::uintptr_t no_address = ~std::uintptr_t{0};
  return reinterpret_cast<CUstream>(no_address);  // NOLINT(performance-no-int-to-ptr): never dereferenced
}

class queuing_threads {
 public:
  /// The record of one thread. The record is never destroyed; when the thread has ended, another thread may reuse it.
  struct thread_record {
    std::atomic<bool> queuing{false};
    std::atomic<bool> taken{true};
    thread_record* next = nullptr;
    // The number of pieces of work that the thread has queued; only the thread itself increments it, after it has
    // queued a piece.
    std::atomic<std::uint64_t> queued{0};
    /// The value of `queued` when the thread last began to use another stream.
    std::atomic<std::uint64_t> elsewhere{0};
    std::atomic<CUstream> stream{nullptr};  ///< the stream of the last piece
    std::atomic<std::uint64_t> done{0};     ///< the number of pieces that are known to be done
  };

  /// Returns the calling thread's record. The first call in a thread may throw std::bad_alloc.
  static thread_record& mine() {
    thread_record* const found = of_this_thread;
    return found != nullptr ? *found : take_record();
  }

  static void enter(thread_record& r) noexcept {
    r.queuing.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with the barrier in wait_until_none
  }
  static void leave(thread_record& r) noexcept { r.queuing.store(false, std::memory_order_release); }
  /// Records that the calling thread has queued a piece of work on a stream. To be called after the driver's call has
  /// returned.
  static void count(thread_record& r, CUstream stream) noexcept {
    const std::uint64_t before = r.queued.load(std::memory_order_relaxed);
    if (r.stream.load(std::memory_order_relaxed) != stream) {
      r.elsewhere.store(before, std::memory_order_relaxed);
      r.stream.store(stream, std::memory_order_release);
    }
    r.queued.store(before + 1, std::memory_order_release);
  }

  /// Marks the calling thread as queuing a piece of work while the object exists.
  class visit {
   public:
    explicit visit(CUstream stream) : here_(mine()), stream_(stream) { enter(here_); }
    ~visit() {
      count(here_, stream_);
      leave(here_);
    }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;

   private:
    thread_record& here_;
    CUstream stream_;
  };

  /// Registers the process for membarrier(2); must have returned true before wait_until_none() is called. Returns false
  /// if the operating system does not support membarrier. In a process with several threads, the first call takes
  /// milliseconds.
  static bool prepare() noexcept;

  /// Waits until each thread that is queuing work has queued this work. Each thread that begins to queue work
  /// afterwards sees the caller's earlier writes.
  static void wait_until_none() noexcept;

  /// Whether another thread is queuing work. All work of other threads that the function does not see sees the caller's
  /// earlier writes. prepare() must have returned true.
  [[nodiscard]] static bool others_queue() noexcept;

  /// A record of the work that all threads have queued so far. The hook for a wait constructs the object before the
  /// driver's call, and calls done() after the call.
  class queued_so_far {
   public:
    /// Without a stream, the record covers the work of all threads. With a stream, the record covers only the work of
    /// threads whose unfinished work is all on this stream. A record contains at most 64 threads and does not cover the
    /// work of further threads.
    queued_so_far() noexcept;
    explicit queued_so_far(CUstream stream) noexcept;
    void done() const noexcept;

   private:
    struct queued_by_thread {
      thread_record* of;
      std::uint64_t queued;
    };
    static constexpr std::size_t most = 64;  // the largest number of threads in one record
    std::array<queued_by_thread, most> parts_;
    std::size_t count_ = 0;
  };
  /// Whether all work that the program has queued is known to be done.
  [[nodiscard]] static bool all_done() noexcept;
  /// To be called before the first call of all_done(). Before watch() is called, the hooks for waits need not construct
  /// a queued_so_far.
  static void watch() noexcept { somebody_asks.store(true, std::memory_order_relaxed); }
  [[nodiscard]] static bool watched() noexcept { return somebody_asks.load(std::memory_order_relaxed); }

 private:
  friend struct record_holder;
  static thread_record& take_record();

  inline static constinit std::atomic<bool> somebody_asks{false};

  // With the initial-exec model, an access to the variable needs no function call. This model is possible because the
  // dynamic linker loads the library when the process starts.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local thread_record* of_this_thread;
};

}  // namespace hpe::cuda_hooks
