#include "interpose/gpu/work/queuing_threads.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace hpe::cuda_hooks {

constinit thread_local queuing_threads::thread_record* queuing_threads::of_this_thread = nullptr;

namespace {

constinit std::atomic<queuing_threads::thread_record*> records{nullptr};

long barrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

// Releases the thread's record when the thread ends. If a thread-local destructor that runs later queues work, the
// thread uses another record, which is never released.
struct record_holder {
  queuing_threads::thread_record* held = nullptr;
  ~record_holder() {
    queuing_threads::of_this_thread = nullptr;
    if (held != nullptr) held->taken.store(false, std::memory_order_release);
  }
};

queuing_threads::thread_record& queuing_threads::take_record() {
  static thread_local record_holder holder;
  thread_record* found = records.load(std::memory_order_acquire);
  while (found != nullptr && found->taken.exchange(true, std::memory_order_acq_rel)) found = found->next;
  if (found == nullptr) {
    found = new thread_record;
    found->next = records.load(std::memory_order_relaxed);
    while (!records.compare_exchange_weak(found->next, found, std::memory_order_acq_rel)) {
    }
  }
  holder.held = found;
  of_this_thread = found;
  return *found;
}

bool queuing_threads::prepare() noexcept { return barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0; }

void queuing_threads::wait_until_none() noexcept {
  barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  for (const thread_record* r = records.load(std::memory_order_acquire); r != nullptr; r = r->next)
    while (r->queuing.load(std::memory_order_acquire)) std::this_thread::yield();
}

bool queuing_threads::others_queue() noexcept {
  const thread_record* const own = of_this_thread;
  barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  for (const thread_record* r = records.load(std::memory_order_acquire); r != nullptr; r = r->next)
    if (r != own && r->queuing.load(std::memory_order_acquire)) return true;
  return false;
}

queuing_threads::queued_so_far::queued_so_far() noexcept {
  for (thread_record* r = records.load(std::memory_order_acquire); r != nullptr && count_ < most; r = r->next) {
    const std::uint64_t queued = r->queued.load(std::memory_order_acquire);
    if (r->done.load(std::memory_order_relaxed) < queued) parts_[count_++] = {r, queued};
  }
}

// The thread may change the other members after this function has read `queued`. `elsewhere` can only grow, so in this
// case the record may omit a thread that it could cover, but never covers too much work.
queuing_threads::queued_so_far::queued_so_far(CUstream stream) noexcept {
  const thread_record* const own = of_this_thread;
  for (thread_record* r = records.load(std::memory_order_acquire); r != nullptr && count_ < most; r = r->next) {
    const std::uint64_t queued = r->queued.load(std::memory_order_acquire);
    const bool same =
        r->stream.load(std::memory_order_acquire) == stream && (stream != CU_STREAM_PER_THREAD || r == own);
    const std::uint64_t done = r->done.load(std::memory_order_relaxed);
    if (same && done < queued && r->elsewhere.load(std::memory_order_relaxed) <= done) parts_[count_++] = {r, queued};
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
  for (const thread_record* r = records.load(std::memory_order_acquire); r != nullptr; r = r->next)
    if (r->done.load(std::memory_order_acquire) < r->queued.load(std::memory_order_acquire)) return false;
  return true;
}

}  // namespace hpe::cuda_hooks
