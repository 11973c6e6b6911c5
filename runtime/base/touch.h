#pragma once

/// Touches: accesses of CPU code to memory whose use by CPU code somebody watches (hpe run --check). The watcher
/// protects pages. At a fault, it can let the thread make this one access: the page is open until the instruction has
/// been executed.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hpe {

/// Bytes that an instruction accesses.
struct cpu_touch {
  const void* fault = nullptr;  ///< the address at which the access failed
  std::uintptr_t begin = 0;     ///< of all bytes of the access; if they are not known, the byte at `fault`
  std::size_t bytes = 1;
  bool writes = false;
  const void* instruction = nullptr;  ///< nullptr if not known
};

enum class touch_answer : std::uint8_t {
  not_watched,  ///< the page is not watched, or the access needs more than an opened page
  repeat,       ///< the page is open now
  step          ///< the page is open now; stepped() is called when the access has been made
};

/// Both functions for faults are called in the signal handler of the thread that faults, and must be async-signal-safe.
struct touch_watcher {
  touch_answer (*faulted)(const cpu_touch& what) noexcept;
  void (*stepped)() noexcept;
  /// Called instead of mprotect for pages of hpe memory, to allow no accesses (0), reads (1) or all accesses (2).
  /// Returns false, and does nothing, if none of the pages is watched. `failed` becomes true if mprotect has failed.
  bool (*protects)(void* begin, std::size_t bytes, int allowed, bool& failed);
  /// A function of libc that hpe replaces accesses these bytes through other pages.
  void (*called)(const void* begin, std::size_t bytes, bool writes) noexcept;
  /// A system call has failed with EFAULT. Opens the watched pages, as far as the program may access them, and returns
  /// whether one was closed.
  bool (*refused)() noexcept;
  /// A function of libc passes these bytes to the operating system, which could refuse them. Opens their pages, and
  /// returns whether one was closed.
  bool (*opens)(const void* begin, std::size_t bytes) noexcept;
};

inline constinit std::atomic<const touch_watcher*> touch_watcher_of_process{nullptr};

/// Returns the watcher, which exists until the process ends; nullptr: there is none.
[[nodiscard]] inline const touch_watcher* watcher_of_touches() noexcept {
  return touch_watcher_of_process.load(std::memory_order_acquire);
}

}  // namespace hpe
