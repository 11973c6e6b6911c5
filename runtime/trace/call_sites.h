#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/trace/call_stack.h"

namespace hpe::trace {

/// A call site of the program: its calls, their bytes, and the time that threads spent in them.
struct site {
  std::vector<void*> stack;  ///< innermost first
  unsigned kind = 0;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::chrono::nanoseconds time{};
  std::uintptr_t lowest = 0;  ///< lowest and highest address that the calls used; 0 if no call used an address
  std::uintptr_t highest = 0;
};

/// Makes call_sites::add() count the calling thread's calls for the call site `place`, on whose behalf the thread
/// works. With nullptr or an empty stack, the thread's later calls count for the thread's own stack. `place` must exist
/// until the next call of count_for in this thread.
void count_for(const call_stack* place) noexcept;

/// Counts calls by call stack, in a table of fixed size. Counting allocates no memory and takes no lock, so threads may
/// count in signal handlers. When the table is full, calls from new stacks are counted together, without a stack.
class call_sites {
 public:
  call_sites();

  /// Counts a call for the stack of the calling thread (see count_for), from the return address `from` outwards;
  /// nullptr: the whole stack. address: the address of the memory that the call used; nullptr: none.
  void add(unsigned kind, std::uint64_t bytes, std::chrono::nanoseconds time, const void* from = nullptr,
           const void* address = nullptr) noexcept;

  /// Returns all sites, sorted by bytes and then by time. The site of the calls that found the table full has an empty
  /// stack.
  [[nodiscard]] std::vector<site> all() const;

 private:
  static constexpr std::size_t capacity = 4096;
  struct site_slot {
    std::atomic<std::uint64_t> key{0};
    std::atomic<int> frames{0};  // 0 until the stack is written
    std::array<void*, call_stack::depth> stack{};
    unsigned kind = 0;
    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<std::int64_t> nanoseconds{0};
    std::atomic<std::uintptr_t> lowest{0};
    std::atomic<std::uintptr_t> highest{0};
  };

  site_slot& find(std::uint64_t key, unsigned kind, void* const* stack, int frames) noexcept;

  std::unique_ptr<site_slot[]> slots_;  // the last slot is for calls that find the table full
};

}  // namespace hpe::trace
