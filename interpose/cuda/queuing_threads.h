#pragma once

/// Which threads are queuing device work of the program just now, for the one moment in which that matters: when the
/// host first touches device memory, work that was let through unseen has to be queued before the devices are waited
/// for. The cost is on that moment's side (membarrier(2)); a thread that queues pays two plain stores.

#include <atomic>

namespace hpe::cuda_hooks {

class queuing_threads {
 public:
  /// A place that belongs to one thread at a time, and is never destroyed.
  struct place {
    std::atomic<bool> queuing{false};
    std::atomic<bool> taken{true};
    place* next = nullptr;
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

  /// The calling thread is queuing while this lives.
  class visit {
   public:
    visit() noexcept : here_(mine()) { enter(here_); }
    ~visit() { leave(here_); }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;

   private:
    place& here_;
  };

  /// Has to succeed once before wait_until_none. False where the kernel has no such barrier. The first call takes
  /// milliseconds in a process that has several threads.
  static bool prepare() noexcept;

  /// After it, every thread that is queuing has seen what the caller wrote before, or is done.
  static void wait_until_none() noexcept;

 private:
  friend struct place_holder;
  static place& take_place() noexcept;

  // The library is preloaded, so that its few bytes per thread are at hand without a call.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local place* of_this_thread;
};

}  // namespace hpe::cuda_hooks
