#include "interpose/cuda/queuing_threads.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace hpe::cuda_hooks {

constinit thread_local queuing_threads::place* queuing_threads::of_this_thread = nullptr;

namespace {

constinit std::atomic<queuing_threads::place*> places{nullptr};

long barrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

// Gives the place back when the thread ends. A call from a later destructor takes another, which then stays taken.
struct place_holder {
  queuing_threads::place* held = nullptr;
  ~place_holder() {
    queuing_threads::of_this_thread = nullptr;
    if (held != nullptr) held->taken.store(false, std::memory_order_release);
  }
};

queuing_threads::place& queuing_threads::take_place() noexcept {
  static thread_local place_holder holder;
  place* found = places.load(std::memory_order_acquire);
  while (found != nullptr && found->taken.exchange(true, std::memory_order_acq_rel)) found = found->next;
  if (found == nullptr) {
    found = new place;  // NOLINT(bugprone-unhandled-exception-at-new): without memory for it the process ends
    found->next = places.load(std::memory_order_relaxed);
    while (!places.compare_exchange_weak(found->next, found, std::memory_order_acq_rel)) {
    }
  }
  holder.held = found;
  of_this_thread = found;
  return *found;
}

bool queuing_threads::prepare() noexcept { return barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0; }

void queuing_threads::wait_until_none() noexcept {
  barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  for (const place* p = places.load(std::memory_order_acquire); p != nullptr; p = p->next)
    while (p->queuing.load(std::memory_order_acquire)) std::this_thread::yield();
}

}  // namespace hpe::cuda_hooks
