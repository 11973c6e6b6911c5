#pragma once

/// Runs code that may crash, so that the process survives.

#include <pthread.h>
#include <ucontext.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime/device/soft/shared/doorbell.h"

namespace hpe::device::soft {

struct crash {
  int signal = 0;
  int code = 0;  // si_code
  std::uintptr_t address = 0;
};

/// Called once, at the start of the process.
void install_crash_handlers();

/// Runs body in this thread. If it raises SIGSEGV, SIGBUS, SIGFPE or SIGILL, it is abandoned where it stands (its
/// destructors do not run, and locks that it holds stay locked) and the crash is returned. Outside of body such a
/// signal ends the process. If `stop` is not null, another thread can abandon body in the same way, with the signal of
/// stop_thread: it sets *stop and calls stop_thread.
std::optional<crash> run_guarded(void (*body)(void*), void* argument, const std::atomic<bool>* stop = nullptr);

template <class Body>
std::optional<crash> run_guarded(Body& body, const std::atomic<bool>* stop = nullptr) {
  return run_guarded([](void* argument) { (*static_cast<Body*>(argument))(); }, &body, stop);
}

/// Makes a thread abandon the body that it runs, if its `stop` is set. A body that blocks all signals is not abandoned.
void stop_thread(pthread_t thread) noexcept;
[[nodiscard]] bool is_stop(const crash& what) noexcept;
/// The crash of work that was stopped between two bodies.
[[nodiscard]] crash make_stop() noexcept;

/// The address of the interrupted instruction's memory operand, by its encoding (Intel 64 and IA-32 Architectures
/// Software Developer's Manual, volume 2, chapter 2); 0 if it has none. For accesses to non-canonical addresses, which
/// the system does not report. Safe in a signal handler.
[[nodiscard]] std::uintptr_t operand_address(const ucontext_t& at) noexcept;

/// How many bodies were abandoned, and how many of their threads have since proved able to go on. Locks of the C
/// library that an abandoned body holds, for example after a crash in malloc, stay locked; the process is useless then.
struct recoveries {
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
};
[[nodiscard]] recoveries count_recoveries() noexcept;
/// Sets the bell that rings when a body is abandoned. To be called before the first one is.
void ring_at_recoveries(doorbell& bell) noexcept;

}  // namespace hpe::device::soft
