#pragma once

/// HPE_STALL_AFTER: if a wait takes longer than this time, hpe reports the wait once on standard error, with the
/// thread, the place in the program and the subject of the wait.
///
/// Each thread notes the subject of its wait in its own slot. This costs a few stores; the thread does not read a
/// clock. One watching thread per process reads all slots from time to time. It sends SIGURG, which is ignored by
/// default, to a stalled thread to ask for its stack. If the program handles SIGURG, the wait is reported without its
/// place.

#include <cstdint>
#include <string>

#include "hpe/hpe.h"

namespace hpe::trace {

/// The subject of a wait, as numbers. The watching thread converts the numbers to words when the waiting thread stalls.
struct awaited_thing {
  /// Returns a sentence that begins with a lower-case letter; may take locks. The wait may be over before the call, so
  /// the function must look up the objects that the numbers name, and `about` must outlive all waits that are noted
  /// with the function.
  using description = std::string (*)(const void* about, std::uint64_t first, std::uint64_t second);

  description describe = nullptr;
  const void* about = nullptr;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

/// A wait as its slot stores it.
struct noted_wait {
  awaited_thing what;
  std::uint64_t number = 0;  ///< counts the thread's waits; 0 if the thread does not wait
  std::uintptr_t frame = 0;  ///< stack address of the `awaited` object
};

/// Marks the calling thread as waiting for other threads, devices or processes while this object exists. Waits may be
/// nested: only the innermost wait is watched. Safe in signal handlers.
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

/// Starts to report waits of this process that take longer than `seconds`; 0 reports none. Only the first call has an
/// effect. Must not be called in signal handlers.
HPE_API void tell_of_stalls(std::uint64_t seconds);

}  // namespace hpe::trace
