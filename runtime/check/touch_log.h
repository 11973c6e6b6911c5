#pragma once

/// Touches of watched memory, from signal handlers to the checker.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/trace/call_stack.h"

namespace hpe::check {

/// Bytes [begin, end) that CPU code has accessed.
struct host_touch {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool writes = false;
  /// The code may have used only some of the bytes: functions of libc read whole vectors.
  bool is_vague = false;
  ::pid_t thread = 0;
  trace::call_stack stack{};
};

class touch_log {
 public:
  /// To be called once, in no signal handler: finds the places of libc's functions.
  void prepare();
  /// Touches by the library that contains this function are not added from now on: its own instructions, and those of
  /// functions of libc and of hpe that it calls.
  void leave_out(const void* function_of_library);

  /// Adds a touch by an instruction of the calling thread, whose stack contains this instruction; nullptr: by the
  /// function that calls add(). Touches by one call of a function of libc, and touches by another instruction that are
  /// reached by the same calls, are joined if their bytes meet. Async-signal-safe.
  void add(std::uintptr_t begin, std::uintptr_t end, bool writes, const void* instruction) noexcept;

  /// Returns the touches so far, in the order in which each thread has made them, and forgets them.
  [[nodiscard]] std::vector<host_touch> take();

 private:
  struct code {
    std::uintptr_t begin = 0, end = 0;
    [[nodiscard]] bool contains(std::uintptr_t address) const { return address >= begin && address < end; }
    [[nodiscard]] bool contains(const void* address) const {
      return contains(reinterpret_cast<std::uintptr_t>(address));
    }
    /// The code of the library that contains an address; empty if none does.
    [[nodiscard]] static code around(const void* address);
  };
  struct entry {
    enum : int { free, in_use, complete };
    std::atomic<int> state{free};
    const void* instruction = nullptr;
    host_touch what;
  };

  [[nodiscard]] bool join(const host_touch& touch, const void* instruction) noexcept;
  /// The part of the stack that has made a touch: from the instruction on, without the functions of libc before the
  /// program's first call. Empty if the stack does not contain the instruction.
  [[nodiscard]] std::span<void* const> calls_of(const host_touch& touch, const void* instruction) const noexcept;

  /// Whether a library that is left out makes a touch.
  [[nodiscard]] bool is_left_out(const host_touch& touch, const void* instruction) const noexcept;

  code libc_;
  code left_out_, hpe_;         // empty until leave_out()
  std::array<code, 2> copies_;  // memcpy and memmove, whose accesses are exact
  std::array<entry, 1024> entries_;
  std::atomic<std::uint64_t> next_{0};
};

}  // namespace hpe::check
