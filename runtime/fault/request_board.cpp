#include "runtime/fault/request_board.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "runtime/os/thread.h"

// Each thread starts its search for a free slot at its own index, so that it finds slots whose requests it has
// abandoned. If the stack pointer is now above the frame of a request's wait, the thread has left this wait for good,
// and takes the request back. Otherwise a signal handler may have interrupted the wait, and this handler now faults. So
// up to most_interrupted of these requests stay in their slots. The fields thread and frame are set some instructions
// after the request is posted, so a request may be wrongly taken back; its thread then posts a new request.

namespace hpe::fault {

namespace {

using clock = std::chrono::steady_clock;

// The time for which a thread spins before it sleeps. hpe copies one part of a long copy in less time, so a thread that
// waits for a part need not sleep: a sleeping thread wakes up 20 to 200 microseconds late (measured in a virtual
// machine with H200s).
constexpr std::chrono::microseconds patience{500};

// The number of threads that may spin at once. On a machine with few cores, no thread spins, because the lane and the
// soft devices need the cores.
unsigned patient_threads() noexcept {
  constexpr unsigned enough_cores = 8;
  const unsigned cores = os::usable_cores();
  return cores < enough_cores ? 0 : cores / 2;
}

// The largest number of a thread's waits that are assumed to be interrupted by nested signal handlers.
constexpr unsigned most_interrupted = 4;

constinit awake_seats seats;

// A thread that ends does not free its request. So threads that find no free slot check at this interval for threads
// that have ended.
constexpr std::chrono::milliseconds until_next_look{10};

// Returns the thread ID of the calling thread. Makes the system call only at the thread's first fault.
pid_t this_thread() noexcept {
  static constinit thread_local pid_t number = 0;
  if (number == 0) number = ::gettid();
  return number;
}

bool has_ended(pid_t thread) noexcept { return ::tgkill(::getpid(), thread, 0) != 0 && errno == ESRCH; }

}  // namespace

awake_seats::seat* awake_seats::take(unsigned limit, clock::time_point now, clock::time_point until) noexcept {
  for (unsigned i = 0; i < std::min(limit, most); ++i) {
    clock::rep taken = taken_until_[i].load(std::memory_order_relaxed);
    if (taken > now.time_since_epoch().count()) continue;
    if (taken_until_[i].compare_exchange_strong(taken, until.time_since_epoch().count())) return &taken_until_[i];
  }
  return nullptr;
}

void awake_seats::leave(seat& taken, clock::time_point until) noexcept {
  clock::rep mine = until.time_since_epoch().count();  // the exchange fails if another thread has the seat by now
  taken.compare_exchange_strong(mine, 0);
}

request_board::request_board(std::span<device::gate* const> gates) : lanes_(gates.size()) {
  for (std::size_t i = 0; i < gates.size(); ++i) lanes_[i].gate = gates[i];
}

request_board::posted_request request_board::post(std::byte* address, bool write, bool waits_for_announced) noexcept {
  const pid_t me = this_thread();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  while (true) {
    const std::uint32_t seen = freed_.load();
    unsigned interrupted = 0;
    for (std::size_t i = 0; i < slot_count; ++i) {
      const std::size_t at = (static_cast<std::size_t>(me) + i) % slot_count;
      request_slot& s = slots_[at];
      if (!s.wish.is_free() && s.thread.load(std::memory_order_relaxed) == me) {
        const bool left = here >= s.frame.load(std::memory_order_relaxed);
        if (left || ++interrupted > most_interrupted) s.wish.take_back();
      }
      const auto ticket = s.wish.post(address, write, waits_for_announced);
      if (!ticket) continue;
      s.frame.store(here, std::memory_order_relaxed);
      s.thread.store(me, std::memory_order_relaxed);
      return {at, *ticket};
    }
    if (take_back_what_is_left(me)) continue;
    slotless_.fetch_add(1);
    os::futex_wait_until(freed_, seen, clock::now() + until_next_look);
    slotless_.fetch_sub(1);
  }
}

bool request_board::take_back_what_is_left(pid_t me) noexcept {
  bool any = false;
  for (request_slot& s : slots_) {
    const pid_t thread = s.thread.load(std::memory_order_relaxed);
    if (thread == me || has_ended(thread)) any |= s.wish.take_back();
  }
  return any;
}

fault_verdict request_board::wait_for_answer(request& wish, request::ticket mine) noexcept {
  std::optional<fault_verdict> result = wish.answered(mine);
  if (const unsigned limit = patient_threads(); !result && limit != 0) {
    const auto now = clock::now();
    const auto end = now + patience;
    if (auto* const seat = seats.take(limit, now, end)) {
      for (; !result && clock::now() < end; result = wish.answered(mine)) os::hardware::relax();
      awake_seats::leave(*seat, end);
    }
  }
  while (!result) {
    wish.sleep(mine);
    result = wish.answered(mine);
  }
  return *result;
}

fault_verdict request_board::ask(unsigned lane, std::byte* address, bool write, bool waits_for_announced) noexcept {
  const auto [index, ticket] = post(address, write, waits_for_announced);
  lanes_[lane].posted[index / word_bits].fetch_or(std::uint64_t{1} << (index % word_bits), std::memory_order_release);
  lanes_[lane].gate->ring();

  request& wish = slots_[index].wish;
  const fault_verdict result = wait_for_answer(wish, ticket);
  if (wish.leave(ticket)) {
    freed_.fetch_add(1);
    if (slotless_.load() != 0) os::futex_wake_all(freed_);
  }
  return result;
}

void request_board::take(unsigned lane, std::vector<request*>& result) {
  bitmap& posted = lanes_[lane].posted;
  for (std::size_t word = 0; word < posted.size(); ++word) {
    if (posted[word].load(std::memory_order_relaxed) == 0) continue;
    std::uint64_t bits = posted[word].exchange(0, std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1) {
      request& wish = slots_[word * word_bits + std::countr_zero(bits)].wish;
      if (wish.take()) result.push_back(&wish);
    }
  }
}

}  // namespace hpe::fault
