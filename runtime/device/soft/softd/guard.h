#pragma once

/// Runs code that may crash, without ending the process.

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

/// Installs the handlers of the signals that crashes raise. Call this once, at the start of the process.
void install_crash_handlers();

/// Call this once in each thread that runs kernels or copies, because threads of the runtime start with their signals
/// blocked. If a crash raised a blocked signal, the process would end; and if the signal of stop_thread was blocked, it
/// would never arrive.
void take_crash_signals() noexcept;

/// Runs `body` in this thread. If `body` raises SIGSEGV, SIGBUS, SIGFPE or SIGILL, abandons it at that instruction (its
/// destructors do not run, and locks that it holds stay locked) and returns the crash. Outside of `body`, these signals
/// end the process. If `stop` is not null, another thread can abandon `body` in the same way: it sets *stop and calls
/// stop_thread, which sends a signal.
std::optional<crash> run_guarded(void (*body)(void*), void* argument, const std::atomic<bool>* stop = nullptr);

template <class Body>
std::optional<crash> run_guarded(Body& body, const std::atomic<bool>* stop = nullptr) {
  return run_guarded([](void* argument) { (*static_cast<Body*>(argument))(); }, &body, stop);
}

/// Makes a thread abandon its current body if the body's `stop` is set. A body that blocks all signals is not
/// abandoned.
void stop_thread(pthread_t thread) noexcept;
[[nodiscard]] bool is_stop(const crash& what) noexcept;
/// Returns a crash that describes work that was stopped between two bodies.
[[nodiscard]] crash make_stop() noexcept;

/// Returns the address of the interrupted instruction's memory operand, derived from its encoding (Intel 64 and IA-32
/// Architectures Software Developer's Manual, volume 2, chapter 2); 0 if the instruction has no memory operand. Needed
/// for accesses to non-canonical addresses, which the system does not report. Safe in a signal handler.
[[nodiscard]] std::uintptr_t operand_address(const ucontext_t& at) noexcept;

/// begun: how many bodies were abandoned. ended: how many of the threads that ran these bodies have since passed a test
/// call of malloc. Locks of the C library that an abandoned body holds, for example after a crash in malloc, stay
/// locked; the test call then hangs, and the process is no longer usable.
struct recoveries {
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
};
[[nodiscard]] recoveries count_recoveries() noexcept;
/// Sets the bell that rings when a body is abandoned. Call this before any body can be abandoned.
void ring_at_recoveries(doorbell& bell) noexcept;

}  // namespace hpe::device::soft
