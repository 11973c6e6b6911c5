#pragma once

/// Runs code that may crash, such as kernels, without ending the process.

#include <pthread.h>
#include <ucontext.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime/device/soft/shared/wait_queue.h"

namespace hpe::device::soft {

struct crash {
  int signal = 0;
  int code = 0;  // si_code
  std::uintptr_t address = 0;
};

/// Installs the handlers of the signals that crashes raise. Call this once, at the start of the process.
void install_crash_handlers();

/// Unblocks the signals of crashes and of stop_thread in the calling thread. Call this once in each thread that runs
/// kernels or copies, because threads of the runtime start with all signals blocked. If a crash raised a blocked
/// signal, the operating system would end the process.
void take_crash_signals() noexcept;

/// Runs `body` in this thread. If `body` raises SIGSEGV, SIGBUS, SIGFPE or SIGILL, abandons `body` at that instruction
/// and returns the crash: destructors of objects in `body` do not run, and locks that `body` holds stay locked. Outside
/// of `body`, these signals end the process. If `stop` is not null, another thread can abandon `body` in the same way:
/// it sets *stop and calls stop_thread, which sends a signal.
std::optional<crash> run_guarded(void (*body)(void*), void* argument, const std::atomic<bool>* stop = nullptr);

template <class Body>
std::optional<crash> run_guarded(Body& body, const std::atomic<bool>* stop = nullptr) {
  return run_guarded([](void* argument) { (*static_cast<Body*>(argument))(); }, &body, stop);
}

/// Makes a thread abandon the body that it runs, if the `stop` of this body is set. If the body has blocked all
/// signals, it continues.
void stop_thread(pthread_t thread) noexcept;
[[nodiscard]] bool is_stop(const crash& what) noexcept;
/// Returns a crash for which is_stop() is true, for a launch that was stopped while no thread ran its tiles.
[[nodiscard]] crash make_stop() noexcept;

/// Decodes the interrupted instruction and returns the address of its memory operand; 0 if the instruction has no
/// memory operand; ptx::unknown_address if it is a gather or scatter, whose addresses are in a vector register (Intel
/// 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2). Needed because Linux does not report
/// non-canonical addresses. Safe in a signal handler.
[[nodiscard]] std::uintptr_t operand_address(const ucontext_t& at) noexcept;

/// Counts recoveries from crashes and stops. `begun`: the number of abandoned bodies. `ended`: the number of abandoned
/// bodies after which the thread has passed a test of malloc's locks. If an abandoned body holds such a lock, for
/// example after a crash in malloc, the test never returns, and the process must end.
struct recoveries {
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
};
[[nodiscard]] recoveries count_recoveries() noexcept;
/// Sets the wait queue whose threads run_guarded wakes when it abandons a body. Call this before the first call of
/// run_guarded.
void wake_at_recoveries(wait_queue& queue) noexcept;

}  // namespace hpe::device::soft
