#pragma once

/// hpe receives page faults before the program does. The operating system stores one action for SIGSEGV; after a call
/// of install_fault_handler, this is hpe's action. This module stores the action that the program has set. That action
/// receives every fault that hpe does not handle, as if the operating system had delivered it. interpose/signals.cpp
/// passes the program's calls of sigaction and related functions to this module.
///
/// Masks. A fault in a thread that blocks SIGSEGV ends the process, so SIGSEGV is never blocked in the kernel. When the
/// program blocks SIGSEGV, hpe blocks SIGSTKFLT instead, a signal that Linux never sends. So the operating system
/// itself stores the program's mask for each thread, across handlers, long jumps, fork and new threads. kernel_mask and
/// program_mask translate between the program's masks and the kernel's.

#include <csignal>
#include <cstdint>

#include "runtime/os/accessed_bytes.h"

namespace hpe::os {

enum class fault_access : std::uint8_t { unknown, read, write, execute };

/// An access that failed because of the page's protection or because no page is mapped.
struct access_violation {
  void* address = nullptr;
  fault_access kind = fault_access::unknown;  ///< unknown where the processor does not report it
  const void* instruction = nullptr;          ///< nullptr if not known
  accessed_bytes of_access{};                 ///< all bytes of the access; empty if not known, or if nobody watches
};

enum class fault_verdict : std::uint8_t {
  retry,    ///< the access may succeed now; the thread repeats it
  step,     ///< as retry; behind the access, the handler calls touch_watcher::stepped. Only after allow_steps()
  not_ours  ///< the fault is delivered to the program's own action
};

/// Called in the signal handler of the faulting thread, on the thread's alternate stack if the thread has one. May be
/// called again while it runs, if the handler of another signal interrupts it and faults. Must be async-signal-safe;
/// the caller preserves errno. A handler of the program that interrupts this function may leave by siglongjmp and never
/// return here; the signal mask is then the one that sigsetjmp saved. If another thread cancels the thread, the
/// cancellation takes effect after the fault has been handled. Not called for instruction fetches: their faults are
/// passed to the program's own action, because a jump into data is the program's error.
using fault_entry = fault_verdict (*)(const access_violation&) noexcept;

/// Installs the handler. The action that was installed before becomes the program's action. Later calls only change the
/// entry. Throws HPE_ERROR_SYSTEM.
void install_fault_handler(fault_entry entry);

/// Sets a function that the signal handler calls when neither hpe nor the program handles a fault, before the fault
/// ends the process; nullptr: no function. The function must be async-signal-safe.
void before_death(void (*prepare)() noexcept) noexcept;

/// Whether the program's calls about the actions of this signal must be passed to this module: SIGSEGV after
/// install_fault_handler(), SIGTRAP after allow_steps().
[[nodiscard]] bool takes(int signal) noexcept;

/// Replaces sigaction(signal, action, old) for the program if takes(signal). Either pointer may be nullptr. Takes no
/// lock; safe in signal handlers.
void exchange_program_action(int signal, const struct sigaction* action, struct sigaction* old) noexcept;

/// Returns the mask to set in the kernel when the program asks for the mask `program`.
[[nodiscard]] sigset_t kernel_mask(const sigset_t& program) noexcept;

/// Returns the mask to report to the program if the mask that is set in the kernel is `kernel`.
[[nodiscard]] sigset_t program_mask(const sigset_t& kernel) noexcept;

/// While the object exists, the calling thread receives none of the program's signals. Threads that the calling thread
/// starts during this time never receive any of these signals, because they inherit the mask. Faults are still handled.
class signals_blocked {
 public:
  signals_blocked() noexcept;
  ~signals_blocked();
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_;
};

/// Translates the mask that the calling thread already has because its creator set the mask, or because a call that was
/// not interposed set it.
void translate_current_mask() noexcept;

/// Prepares the process for fault_verdict::step, once: SIGTRAP ends a step, and all other ones reach the action that
/// the program has set. Returns false if the processor has no steps.
[[nodiscard]] bool allow_steps();

}  // namespace hpe::os
