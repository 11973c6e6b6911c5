#pragma once

/// Page faults come to hpe first. The kernel has one action for SIGSEGV, which is ours from install_fault_handler on;
/// the one that the program believes to have set is kept here, and gets every fault that is not ours, as the kernel
/// would have given it. interpose/signals.cpp routes the program's calls of sigaction and its relatives to this place.
///
/// Masks. A thread that blocks SIGSEGV is killed by its next fault, so SIGSEGV is never blocked in the kernel. When the
/// program blocks it, SIGSTKFLT is blocked instead, a signal that Linux never sends: the kernel then keeps for us, in
/// each thread, over handlers, long jumps, fork and new threads, what the program asked for. kernel_mask and
/// program_mask translate.

#include <csignal>
#include <cstdint>

namespace hpe::os {

enum class access_kind : std::uint8_t { unknown, read, write, execute };

/// An access to memory that its protection, or the lack of a mapping, refused.
struct access_violation {
  void* address = nullptr;
  access_kind kind = access_kind::unknown;  ///< unknown where the processor does not tell
  const void* instruction = nullptr;        ///< nullptr where that is not known
};

enum class fault_verdict : std::uint8_t {
  retry,    ///< the access may succeed now; it is done again
  not_ours  ///< the program's own action gets the fault
};

/// Runs in the signal handler of the faulting thread, on its alternate stack if it has one, and may be entered again
/// from a handler of another signal that interrupts it. It keeps to what a handler may do; errno is saved around it. A
/// program may leave it for good with siglongjmp from such a handler, with the mask restored. The thread is not
/// cancelled meanwhile: a cancellation takes effect when the fault has been answered. Instruction fetches go to the
/// program's own action at once: a jump into data is the program's error.
using fault_entry = fault_verdict (*)(const access_violation&) noexcept;

/// Installs the handler; what was installed before becomes the program's action. Calling it again changes the entry.
/// Throws HPE_ERROR_SYSTEM.
void install_fault_handler(fault_entry entry);

/// Whether the program's calls about SIGSEGV have to come here.
[[nodiscard]] bool fault_handler_installed() noexcept;

/// What sigaction(SIGSEGV, action, old) does for the program once the handler is installed. Either may be nullptr.
/// Needs no lock; safe in handlers.
void exchange_program_action(const struct sigaction* action, struct sigaction* old) noexcept;

/// The mask to give the kernel when the program asks for this one.
[[nodiscard]] sigset_t kernel_mask(const sigset_t& program) noexcept;

/// The mask to tell the program when the kernel has this one.
[[nodiscard]] sigset_t program_mask(const sigset_t& kernel) noexcept;

/// While it lives, the calling thread takes none of the program's signals, and threads that it makes never will: those
/// are for the program's threads. Faults are not held up.
class signals_blocked {
 public:
  signals_blocked() noexcept;
  ~signals_blocked();
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_;
};

/// Translates the mask that the calling thread has already, from a parent or a caller whom nobody interposed.
void translate_current_mask() noexcept;

}  // namespace hpe::os
