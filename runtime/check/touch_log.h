#pragma once

/// Touches of watched memory, from signal handlers to the checker.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
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

  /// Adds a touch by an instruction of the calling thread; nullptr: by the function that calls add(). Touches of one
  /// instruction that follow each other are joined. Async-signal-safe.
  void add(std::uintptr_t begin, std::uintptr_t end, bool writes, const void* instruction) noexcept;

  /// Returns the touches so far, in the order in which each thread has made them, and forgets them.
  [[nodiscard]] std::vector<host_touch> take();

 private:
  struct code {
    std::uintptr_t begin = 0, end = 0;
    [[nodiscard]] bool contains(std::uintptr_t address) const { return address >= begin && address < end; }
  };
  struct entry {
    enum : int { free, in_use, complete };
    std::atomic<int> state{free};
    std::uintptr_t instruction = 0;
    host_touch what;
  };

  [[nodiscard]] bool join(std::uintptr_t begin, std::uintptr_t end, bool writes, std::uintptr_t instruction) noexcept;

  code libc_;
  std::array<code, 2> copies_;  // memcpy and memmove, whose accesses are exact
  std::array<entry, 1024> entries_;
  std::atomic<std::uint64_t> next_{0};
};

}  // namespace hpe::check
