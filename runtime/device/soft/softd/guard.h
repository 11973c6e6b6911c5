#pragma once

/// Running code that may crash, without dying of it.

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

/// Once, at the start of the process.
void install_crash_handlers();

/// Runs body in this thread. If it raises SIGSEGV, SIGBUS, SIGFPE or SIGILL, it is left where it stands (its
/// destructors do not run, and locks that it holds stay locked) and the crash is returned. Outside of body such a
/// signal ends the process. Where `stop` is not null, body is left in the same way, with the signal of stop_thread,
/// when another thread sets it and calls stop_thread.
std::optional<crash> run_guarded(void (*body)(void*), void* argument, const std::atomic<bool>* stop = nullptr);

template <class Body>
std::optional<crash> run_guarded(Body& body, const std::atomic<bool>* stop = nullptr) {
  return run_guarded([](void* argument) { (*static_cast<Body*>(argument))(); }, &body, stop);
}

/// Has a thread leave the body that it runs, if its `stop` is set. A body that blocks all signals stays.
void stop_thread(pthread_t thread) noexcept;
[[nodiscard]] bool is_stop(const crash& what) noexcept;
/// For work that was stopped between two bodies.
[[nodiscard]] crash make_stop() noexcept;

/// The address that the interrupted instruction uses in memory, by its encoding (Intel 64 and IA-32 Architectures
/// Software Developer's Manual, volume 2, chapter 2); 0 where it uses none. For accesses to addresses that cannot
/// exist, whose upper bits differ: the system does not say which they were. Safe in a signal handler.
[[nodiscard]] std::uintptr_t operand_address(const ucontext_t& at) noexcept;

/// How many bodies were left, and how many of their threads have been found able to go on since: what a body has locked
/// in the C library, as when it crashes in malloc, stays locked, and this process can do nothing more then.
struct recoveries {
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
};
[[nodiscard]] recoveries count_recoveries() noexcept;
/// Rung when one begins. Before the first.
void ring_at_recoveries(doorbell& bell) noexcept;

}  // namespace hpe::device::soft
