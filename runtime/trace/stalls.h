#pragma once

/// HPE_STALL_AFTER: a wait that takes longer is told on standard error, once, with the thread, its place in the program
/// and what it waits for.
///
/// A thread notes what it waits for in a slot of its own: a few stores, no clock. One thread of the process looks at
/// all slots from time to time. It asks a stalled thread for its stack by a signal: SIGURG, which is ignored by
/// default; a thread of a program that handles SIGURG is told without its place.

#include <cstdint>
#include <string>

#include "hpe/hpe.h"

namespace hpe::trace {

/// What a thread waits for, as numbers: the words are made when it stalls, in another thread.
struct awaited_thing {
  /// A sentence that begins with a small letter; may take locks. The thread may have gone on meanwhile, so what the
  /// numbers name is looked up, and `about` lives as long as the process waits for such things.
  using description = std::string (*)(const void* about, std::uint64_t first, std::uint64_t second);

  description describe = nullptr;
  const void* about = nullptr;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

/// A wait as its slot has it.
struct noted_wait {
  awaited_thing what;
  std::uint64_t number = 0;  ///< of the thread's waits; 0: it waits for nothing
  std::uintptr_t frame = 0;  ///< where on its stack the wait is
};

/// While it lives, the calling thread waits for something that others do. Waits may be nested: the inner one counts.
/// Safe in signal handlers.
class HPE_API awaited {
 public:
  explicit awaited(const awaited_thing& what) noexcept;
  ~awaited();
  awaited(const awaited&) = delete;
  awaited& operator=(const awaited&) = delete;

 private:
  noted_wait outer_;
  bool noted_;
};

/// Tells of waits in this process that take longer than so many seconds, from now on; 0: of none. The first call
/// counts. Not for signal handlers.
HPE_API void tell_of_stalls(std::uint64_t seconds);

}  // namespace hpe::trace
