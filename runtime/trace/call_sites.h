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

/// What a place of the program caused: calls, bytes, and the time that its threads spent on it.
struct site {
  std::vector<void*> stack;  ///< innermost first
  unsigned kind = 0;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::chrono::nanoseconds time{};
  std::uintptr_t lowest = 0;  ///< of the addresses that it was counted for; 0: of none
  std::uintptr_t highest = 0;
};

/// While the calling thread does what another place has asked for, it counts for that place; nullptr, or an empty
/// stack: for where it is itself. The stack lives as long.
void count_for(const call_stack* place) noexcept;

/// Counts by call stack, in a table of fixed size, so that nothing is allocated and no lock is taken: threads may count
/// in signal handlers. What finds no room is counted without its place.
class call_sites {
 public:
  call_sites();

  /// Counts for the stack of the calling thread (see count_for), from the return address `from` outwards; nullptr: all
  /// of it. address: of the memory that it is about; nullptr: none.
  void add(unsigned kind, std::uint64_t bytes, std::chrono::nanoseconds time, const void* from = nullptr,
           const void* address = nullptr) noexcept;

  /// All that was counted, by bytes and then by time. What has no place comes with an empty stack.
  [[nodiscard]] std::vector<site> all() const;

 private:
  static constexpr std::size_t capacity = 4096;
  struct slot {
    std::atomic<std::uint64_t> key{0};
    std::atomic<int> frames{0};  // 0 until the stack is there
    std::array<void*, call_stack::depth> stack{};
    unsigned kind = 0;
    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<std::int64_t> nanoseconds{0};
    std::atomic<std::uintptr_t> lowest{0};
    std::atomic<std::uintptr_t> highest{0};
  };

  slot& find(std::uint64_t key, unsigned kind, void* const* stack, int frames) noexcept;

  std::unique_ptr<slot[]> slots_;  // the last one is for what finds no room
};

}  // namespace hpe::trace
