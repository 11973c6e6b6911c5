#pragma once

/// Page faults come to hpe first. The kernel has one action for SIGSEGV: hpe's, from install_fault_handler on. The
/// action that the program believes to have set is stored here, and gets every fault that is not hpe's, as the kernel
/// would deliver it. interpose/signals.cpp routes the program's calls of sigaction and its relatives here.
///
/// Masks. A fault in a thread that blocks SIGSEGV ends the process, so SIGSEGV is never blocked in the kernel. When the
/// program blocks it, hpe blocks SIGSTKFLT instead, a signal that Linux never sends. So the kernel itself keeps the
/// program's wish for each thread, over handlers, long jumps, fork and new threads. kernel_mask and program_mask
/// translate.

#include <csignal>
#include <cstdint>

namespace hpe::os {

enum class access_kind : std::uint8_t { unknown, read, write, execute };

/// An access that the page's protection, or the lack of a mapping, refused.
struct access_violation {
  void* address = nullptr;
  access_kind kind = access_kind::unknown;  ///< unknown where the processor does not report it
  const void* instruction = nullptr;        ///< nullptr if not known
};

enum class fault_verdict : std::uint8_t {
  retry,    ///< the access may succeed now; the thread repeats it
  not_ours  ///< the program's own action gets the fault
};

/// Called in the signal handler of the faulting thread, on its alternate stack if it has one. May be called again by a
/// handler of another signal that interrupts it. Must be async-signal-safe; the caller keeps errno. A program may leave
/// it for good with siglongjmp from such a handler, with the mask restored. Cancellation of the thread takes effect
/// when the fault has been answered. Not called for instruction fetches, which go to the program's own action: a jump
/// into data is the program's error.
using fault_entry = fault_verdict (*)(const access_violation&) noexcept;

/// Installs the handler. The action installed before becomes the program's. Later calls only change the entry.
/// Throws HPE_ERROR_SYSTEM.
void install_fault_handler(fault_entry entry);

/// Whether the program's calls about SIGSEGV must be routed here.
[[nodiscard]] bool fault_handler_installed() noexcept;

/// Does for the program what sigaction(SIGSEGV, action, old) does, once the handler is installed. Either pointer may be
/// nullptr. Takes no lock; safe in signal handlers.
void exchange_program_action(const struct sigaction* action, struct sigaction* old) noexcept;

/// The mask for the kernel when the program asks for the mask `program`.
[[nodiscard]] sigset_t kernel_mask(const sigset_t& program) noexcept;

/// The mask to report to the program when the kernel has the mask `kernel`.
[[nodiscard]] sigset_t program_mask(const sigset_t& kernel) noexcept;

/// While the object lives, the calling thread takes none of the program's signals, and threads that it starts never do,
/// because they inherit the mask. Faults are still handled.
class signals_blocked {
 public:
  signals_blocked() noexcept;
  ~signals_blocked();
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_;
};

/// Translates the mask that the calling thread already has, set by its creator or by a call that was not interposed.
void translate_current_mask() noexcept;

}  // namespace hpe::os
