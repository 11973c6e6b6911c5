#include "interpose/gpu/work/queuing_threads.h"

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

// Releases the thread's record when the thread ends. If a thread-local destructor that runs later queues work, the
// thread uses another record, which is never released.
struct place_holder {
  queuing_threads::place* held = nullptr;
  ~place_holder() {
    queuing_threads::of_this_thread = nullptr;
    if (held != nullptr) held->taken.store(false, std::memory_order_release);
  }
};

queuing_threads::place& queuing_threads::take_place() {
  static thread_local place_holder holder;
  place* found = places.load(std::memory_order_acquire);
  while (found != nullptr && found->taken.exchange(true, std::memory_order_acq_rel)) found = found->next;
  if (found == nullptr) {
    found = new place;
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

queuing_threads::queued_so_far::queued_so_far() noexcept {
  for (place* p = places.load(std::memory_order_acquire); p != nullptr && count_ < most; p = p->next) {
    const std::uint64_t queued = p->queued.load(std::memory_order_acquire);
    if (p->done.load(std::memory_order_relaxed) < queued) parts_[count_++] = {p, queued};
  }
}

// The thread may change the other members after this function has read `queued`. `elsewhere` can only grow, so in this
// case the record may omit a thread that it could cover, but never covers too much work.
queuing_threads::queued_so_far::queued_so_far(CUstream stream) noexcept {
  const place* const own = of_this_thread;
  for (place* p = places.load(std::memory_order_acquire); p != nullptr && count_ < most; p = p->next) {
    const std::uint64_t queued = p->queued.load(std::memory_order_acquire);
    const bool same =
        p->stream.load(std::memory_order_acquire) == stream && (stream != CU_STREAM_PER_THREAD || p == own);
    const std::uint64_t done = p->done.load(std::memory_order_relaxed);
    if (same && done < queued && p->elsewhere.load(std::memory_order_relaxed) <= done) parts_[count_++] = {p, queued};
  }
}

void queuing_threads::queued_so_far::done() const noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    std::atomic<std::uint64_t>& done = parts_[i].of->done;
    std::uint64_t before = done.load(std::memory_order_relaxed);
    while (before < parts_[i].queued && !done.compare_exchange_weak(before, parts_[i].queued, std::memory_order_release,
                                                                    std::memory_order_relaxed)) {
    }
  }
}

bool queuing_threads::all_done() noexcept {
  for (const place* p = places.load(std::memory_order_acquire); p != nullptr; p = p->next)
    if (p->done.load(std::memory_order_acquire) < p->queued.load(std::memory_order_acquire)) return false;
  return true;
}

}  // namespace hpe::cuda_hooks
