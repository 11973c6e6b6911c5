#include "runtime/fault/request_board.h"

#include <bit>
#include <chrono>

#include "runtime/os/cores.h"

// A slot goes free -> claimed (by compare and swap, in the faulting thread) -> posted -> answered (by the lane) -> free
// (by the faulting thread, which read the answer). The lane keeps a pointer to a slot from take() until answer() only.
// A thread that goes to sleep says so, posted -> slept_on, so that answers to threads that are awake need no system
// call.

namespace hpe::fault {

namespace {

// Longer than the pieces of a long copy take: a thread that sleeps is late by 20 to 200 microseconds (a virtual machine
// with H200s). Where cores are few, the lane and the devices need them more.
constexpr std::chrono::microseconds patience{500};

// How many threads may wait awake at once.
int patient_threads() noexcept {
  constexpr unsigned enough_cores = 8;
  const unsigned cores = os::usable_cores();
  return cores < enough_cores ? 0 : static_cast<int>(cores / 2);
}

std::atomic<int> awake{0};

}  // namespace

void request::answer(verdict v) noexcept {
  const std::uint32_t before = state_.exchange(v == verdict::retry ? retry_it : refuse_it, std::memory_order_acq_rel);
  if (before == slept_on) os::futex_wake_all(state_);
}

request_board::request_board(std::span<device::gate* const> gates) : lanes_(gates.size()) {
  (void)patient_threads();  // known before the first handler asks
  for (std::size_t i = 0; i < gates.size(); ++i) lanes_[i].gate = gates[i];
}

std::size_t request_board::claim() noexcept {
  // Threads start at different slots: their stacks lie at different places.
  const char here = 0;
  const std::size_t start = reinterpret_cast<std::uintptr_t>(&here) >> 16;
  while (true) {
    const std::uint32_t seen = freed_.load();
    for (std::size_t i = 0; i < slot_count; ++i) {
      request& slot = slots_[(start + i) % slot_count];
      std::uint32_t expected = request::free_slot;
      if (slot.state_.compare_exchange_strong(expected, request::claimed, std::memory_order_acq_rel))
        return (start + i) % slot_count;
    }
    slotless_.fetch_add(1);
    os::futex_wait(freed_, seen);
    slotless_.fetch_sub(1);
  }
}

std::uint32_t request_board::wait_for_answer(request& slot) noexcept {
  using clock = std::chrono::steady_clock;
  const auto answered = [&](std::uint32_t state) { return state != request::posted && state != request::slept_on; };
  std::uint32_t state = slot.state_.load(std::memory_order_acquire);
  if (awake.fetch_add(1) < patient_threads()) {
    const auto end = clock::now() + patience;
    for (; !answered(state) && clock::now() < end; state = slot.state_.load(std::memory_order_acquire))
      __builtin_ia32_pause();
  }
  awake.fetch_sub(1);
  if (answered(state)) return state;
  slot.state_.compare_exchange_strong(state, request::slept_on, std::memory_order_acq_rel);
  while (!answered(state = slot.state_.load(std::memory_order_acquire))) os::futex_wait(slot.state_, request::slept_on);
  return state;
}

verdict request_board::ask(unsigned lane, std::byte* address, bool write, bool waits_for_announced) noexcept {
  const std::size_t index = claim();
  request& slot = slots_[index];
  slot.address_ = address;
  slot.write_ = write;
  slot.waits_for_announced_ = waits_for_announced;
  slot.state_.store(request::posted, std::memory_order_release);
  lanes_[lane].posted[index / word_bits].fetch_or(std::uint64_t{1} << (index % word_bits), std::memory_order_release);
  lanes_[lane].gate->ring();

  const std::uint32_t state = wait_for_answer(slot);
  slot.state_.store(request::free_slot, std::memory_order_release);
  freed_.fetch_add(1);
  if (slotless_.load() != 0) os::futex_wake_all(freed_);
  return state == request::retry_it ? verdict::retry : verdict::not_ours;
}

void request_board::take(unsigned lane, std::vector<request*>& result) {
  bitmap& posted = lanes_[lane].posted;
  for (std::size_t word = 0; word < posted.size(); ++word) {
    if (posted[word].load(std::memory_order_relaxed) == 0) continue;
    std::uint64_t bits = posted[word].exchange(0, std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1) result.push_back(&slots_[word * word_bits + std::countr_zero(bits)]);
  }
}

}  // namespace hpe::fault
