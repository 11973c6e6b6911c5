#include "runtime/os/signals.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/touch.h"
#include "runtime/os/next_function.h"

// The handler is installed with SA_NODEFER and a mask of one signal. So it runs under the mask of the code that it
// interrupted: a thread that waits for its data still receives SIGINT, and the handler of SIGINT may itself fault. Just
// before our handler calls the program's handler, our handler sets the mask that the program requested for it. The
// return from our handler restores the interrupted code's mask.
//
// The one signal blocked while our handler runs is the one by which the C library cancels a thread whose cancellation
// type is asynchronous. The handler of that signal unwinds the stack from the point of interruption, and the functions
// that handle a fault do not support unwinding. The thread is cancelled when our handler returns.
//
// The program can notice three differences from a process without hpe; we know no program that depends on them. The
// program's handler always runs on the alternate stack if the thread has one. System calls that a sent SIGSEGV
// interrupts are restarted. sigwait and signalfd do not see SIGSEGV.

namespace hpe::os {

namespace {

using action = struct sigaction;

// The signal that hpe blocks instead of SIGSEGV (see "Masks" in signals.h). If a SIGSEGV that was sent reaches a thread
// in which the program has blocked SIGSEGV, hpe sends the stand-in to this thread. The stand-in stays pending until the
// program unblocks SIGSEGV; hpe then delivers it as a SIGSEGV.
constexpr int stand_in = SIGSTKFLT;

// The size of the kernel's signal set. sigset_t is larger: it also has bits for signals that do not exist.
constexpr std::size_t kernel_mask_bytes = _NSIG / 8;

// The C library's signal for pthread_cancel. The C library's sigaddset refuses this number.
sigset_t cancellation() noexcept {
  constexpr int signal = __SIGRTMIN;
  sigset_t result;
  sigemptyset(&result);
  result.__val[0] = 1UL << (signal - 1);
  return result;
}

constinit next_function<int(int, const action*, action*)> next_sigaction("sigaction");
constinit std::atomic<fault_entry> current_entry{nullptr};

action default_action() noexcept {
  action a{};
  a.sa_handler = SIG_DFL;
  return a;
}

// ---- the program's action ---------------------------------------------------------------------------------------

// Several slots hold actions. published_ grows with each change; its remainder modulo slot_count is the index of the
// current slot. A writer claims a slot, and writes it only while it is not the current one. So readers never wait,
// writers wait only if every slot is claimed, and both work in signal handlers and in a child after fork.
class action_cell {
 public:
  struct versioned {
    std::uint64_t number;
    action value;
  };

  [[nodiscard]] versioned read() const noexcept {
    for (;;) {
      const std::uint64_t number = published_.load(std::memory_order_acquire);
      const action value = slots_[number % slot_count].load();
      if (published_.load(std::memory_order_relaxed) == number) return {number, value};
    }
  }

  action exchange(const action& value) noexcept {
    for (;;) {
      const versioned before = read();
      if (replace(before.number, value)) return before.value;
    }
  }

  /// Returns the action for a signal that the program receives now. SA_RESETHAND takes effect.
  action deliver() noexcept {
    for (;;) {
      const auto [number, value] = read();
      if ((value.sa_flags & SA_RESETHAND) == 0 || value.sa_handler == SIG_IGN || value.sa_handler == SIG_DFL)
        return value;
      action next = value;
      next.sa_handler = SIG_DFL;
      if (replace(number, next)) return value;
    }
  }

  /// Replaces the value if `number` is the number of the current value. Otherwise returns false and changes nothing.
  bool replace(std::uint64_t number, const action& value) noexcept {
    const std::size_t mine = claim();
    slots_[mine].store(value);
    const std::uint64_t next = (number / slot_count + 1) * slot_count + mine;
    const bool done = published_.compare_exchange_strong(number, next, std::memory_order_acq_rel);
    slots_[mine].claimed.store(false, std::memory_order_release);
    return done;
  }

 private:
  static constexpr std::size_t slot_count = 16;
  static_assert(sizeof(action) % sizeof(std::uint64_t) == 0);

  struct action_slot {
    using words = std::array<std::uint64_t, sizeof(action) / sizeof(std::uint64_t)>;

    void store(const action& value) noexcept {
      words source;
      std::memcpy(source.data(), &value, sizeof value);
      for (std::size_t i = 0; i < source.size(); ++i) content[i].store(source[i], std::memory_order_release);
    }

    // The loads have acquire order, so that the check of published_ in read() comes after them.
    [[nodiscard]] action load() const noexcept {
      words copy;
      for (std::size_t i = 0; i < copy.size(); ++i) copy[i] = content[i].load(std::memory_order_acquire);
      action value;
      std::memcpy(&value, copy.data(), sizeof value);
      return value;
    }

    std::array<std::atomic<std::uint64_t>, words().size()> content{};
    std::atomic<bool> claimed{false};
  };

  std::size_t claim() noexcept {
    for (std::size_t i = 0;; i = (i + 1) % slot_count) {
      if (slots_[i].claimed.exchange(true, std::memory_order_acq_rel)) continue;
      // While we hold the claim, no other thread can publish this slot.
      if (published_.load(std::memory_order_acquire) % slot_count != i) return i;
      slots_[i].claimed.store(false, std::memory_order_release);
    }
  }

  std::array<action_slot, slot_count> slots_{};  // zeros stand for SIG_DFL
  std::atomic<std::uint64_t> published_{0};
};
static_assert(SIG_DFL == nullptr);

constinit action_cell program_action;  // for SIGSEGV
constinit action_cell program_trap;    // for SIGTRAP, after allow_steps()
constinit std::atomic<bool> steps_are_allowed{false};

action_cell& program_action_of(int signal) noexcept { return signal == SIGTRAP ? program_trap : program_action; }

// ---- a fault as the processor reports it --------------------------------------------------------------------------

#if defined(__x86_64__)

// The bits of the processor's page-fault error code.
constexpr greg_t write_bit = 1 << 1;
constexpr greg_t fetch_bit = 1 << 4;

access_violation describe(const siginfo_t* info, const ucontext_t* context) noexcept {
  const auto& registers = context->uc_mcontext.gregs;
  fault_access kind = fault_access::read;
  if ((registers[REG_ERR] & write_bit) != 0) kind = fault_access::write;
  if ((registers[REG_ERR] & fetch_bit) != 0) kind = fault_access::execute;
  access_violation result{info->si_addr, kind, reinterpret_cast<const void*>(registers[REG_RIP])};
  if (kind != fault_access::execute && watcher_of_touches() != nullptr)
    result.of_access = bytes_accessed_by(*context).value_or(accessed_bytes{});
  return result;
}

// The flag by which the processor raises SIGTRAP behind the next instruction.
constexpr greg_t trap_flag = 1 << 8;
constexpr bool has_steps = true;

void set_trap(ucontext_t* context, bool on) noexcept {
  greg_t& flags = context->uc_mcontext.gregs[REG_EFL];
  flags = on ? flags | trap_flag : flags & ~trap_flag;
}

#else

access_violation describe(const siginfo_t* info, const ucontext_t*) noexcept {
  return {info->si_addr, fault_access::unknown, nullptr};
}

constexpr bool has_steps = false;
void set_trap(ucontext_t*, bool) noexcept {}

#endif

// ---- steps --------------------------------------------------------------------------------------------------------

// During a step, no signal handler of the program runs in the thread: it could leave the step by a long jump. SIGTRAP
// ends the process if it is blocked, so it is not.
// The table contains the threads that make a step, which takes microseconds. Thread-local variables would do the same,
// but a handler must not allocate their storage, and storage that needs no allocation is short in Python.
struct step {
  std::atomic<pid_t> thread{0};
  sigset_t mask_before{};
};
constinit std::array<step, 64> steps{};

// Returns the step of the calling thread; null if it makes none.
step* find_step() noexcept {
  const auto found = std::ranges::find(steps, ::gettid(), [](const step& each) { return each.thread.load(); });
  return found != steps.end() ? &*found : nullptr;
}

step& add_step() noexcept {
  for (std::size_t at = 0;; at = (at + 1) % steps.size()) {
    pid_t none = 0;
    if (steps[at].thread.compare_exchange_strong(none, ::gettid())) return steps[at];
  }
}

void begin_step(ucontext_t* context) noexcept {
  if (find_step() != nullptr) return;  // an access to several pages
  add_step().mask_before = context->uc_sigmask;
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGTRAP, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  context->uc_sigmask = all;
  set_trap(context, true);
}

void end_step(step& ended, ucontext_t* context) noexcept {
  context->uc_sigmask = ended.mask_before;
  ended.thread = 0;
  set_trap(context, false);
  const int saved = errno;
  watcher_of_touches()->stepped();
  errno = saved;
}

// ---- forwarding ---------------------------------------------------------------------------------------------------

// Changes this thread's mask by a system call, not by the interposed functions. Preserves errno.
void change_mask(int how, const sigset_t& set) noexcept {
  const int saved = errno;
  ::syscall(SYS_rt_sigprocmask, how, &set, nullptr, kernel_mask_bytes);
  errno = saved;
}

// Sends `signal` to this thread with the given siginfo, which may have an si_code that only the kernel uses.
void send_again(int signal, siginfo_t info) noexcept {
  info.si_signo = signal;
  ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), signal, &info);
}

std::atomic<void (*)() noexcept> prepare_death{nullptr};

// Ends the process as an unhandled SIGSEGV does, with the faulting thread's state in the core file. When our handler
// returns, the signal arrives again, and its action is then the default action.
void die(const siginfo_t* info, ucontext_t* context) noexcept {
  if (void (*const prepare)() noexcept = prepare_death.load(std::memory_order_acquire)) prepare();
  const action none = default_action();
  next_sigaction(SIGSEGV, &none, nullptr);
  sigdelset(&context->uc_sigmask, SIGSEGV);
  send_again(SIGSEGV, *info);
}

// Calls the program's handler. The handler may also leave this function by a long jump, an exception or cancellation.
void call(const action& handler, siginfo_t* info, ucontext_t* context) {
  sigset_t blocked = handler.sa_mask;
  if ((handler.sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, info->si_signo);
  blocked = kernel_mask(blocked);
  sigorset(&blocked, &blocked, &context->uc_sigmask);
  change_mask(SIG_SETMASK, blocked);
  if ((handler.sa_flags & SA_SIGINFO) != 0)
    handler.sa_sigaction(info->si_signo, info, context);
  else
    handler.sa_handler(info->si_signo);
}

// Treats a SIGSEGV that hpe does not handle as the operating system would treat it under the program's action.
void forward(siginfo_t* info, ucontext_t* context) {
  const bool sent = info->si_code <= 0;
  const bool blocked = sigismember(&context->uc_sigmask, stand_in) == 1;
  if (blocked) return sent ? send_again(stand_in, *info) : die(info, context);
  const action handler = program_action.deliver();
  if (handler.sa_handler == SIG_IGN && sent) return;
  if (handler.sa_handler == SIG_IGN || handler.sa_handler == SIG_DFL) return die(info, context);
  call(handler, info, context);
}

void on_segv(int /*signal*/, siginfo_t* info, void* context) {
  auto* interrupted = static_cast<ucontext_t*>(context);
  if (info->si_code == SEGV_MAPERR || info->si_code == SEGV_ACCERR) {
    const access_violation refused = describe(info, interrupted);
    const int saved = errno;
    const fault_verdict verdict = refused.kind != fault_access::execute
                                      ? current_entry.load(std::memory_order_acquire)(refused)
                                      : fault_verdict::not_ours;
    errno = saved;
    if (verdict == fault_verdict::step) begin_step(interrupted);
    if (verdict != fault_verdict::not_ours) return;
  }
  if (step* const mine = find_step(); mine != nullptr) end_step(*mine, interrupted);
  forward(info, interrupted);
}

// Delivers a SIGSEGV that was sent while the program had blocked SIGSEGV. The program has unblocked SIGSEGV now.
void on_stand_in(int /*signal*/, siginfo_t* info, void* context) {
  info->si_signo = SIGSEGV;
  forward(info, static_cast<ucontext_t*>(context));
}

void on_trap(int /*signal*/, siginfo_t* info, void* context) {
  auto* interrupted = static_cast<ucontext_t*>(context);
  if (step* const mine = find_step(); mine != nullptr) return end_step(*mine, interrupted);
  const action handler = program_trap.deliver();
  if (handler.sa_handler == SIG_IGN) return;
  if (handler.sa_handler != SIG_DFL) return call(handler, info, interrupted);
  next_sigaction(SIGTRAP, &handler, nullptr);
  ::raise(SIGTRAP);
}

void install(int signal, void (*handler)(int, siginfo_t*, void*)) {
  action ours{};
  ours.sa_sigaction = handler;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  ours.sa_mask = cancellation();
  if (next_sigaction(signal, &ours, nullptr) != 0) throw_system_error("sigaction");
}

}  // namespace

void install_fault_handler(fault_entry entry) {
  current_entry.store(entry, std::memory_order_release);
  action before{};
  if (next_sigaction(SIGSEGV, nullptr, &before) != 0) throw_system_error("sigaction");
  if (before.sa_sigaction == on_segv) return;
  // The program's action is stored before our handlers are installed, because our handlers need it.
  before.sa_mask = program_mask(before.sa_mask);
  program_action.exchange(before);
  install(stand_in, on_stand_in);
  install(SIGSEGV, on_segv);
  translate_current_mask();
}

bool allow_steps() {
  if (!has_steps) return false;
  action before{};
  if (next_sigaction(SIGTRAP, nullptr, &before) != 0) throw_system_error("sigaction");
  before.sa_mask = program_mask(before.sa_mask);
  program_trap.exchange(before);
  install(SIGTRAP, on_trap);
  steps_are_allowed.store(true, std::memory_order_release);
  return true;
}

void before_death(void (*prepare)() noexcept) noexcept { prepare_death.store(prepare, std::memory_order_release); }

bool takes(int signal) noexcept {
  if (signal == SIGTRAP) return steps_are_allowed.load(std::memory_order_acquire);
  return signal == SIGSEGV && current_entry.load(std::memory_order_acquire) != nullptr;
}

void exchange_program_action(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  action_cell& its = program_action_of(signal);
  const struct sigaction before = action != nullptr ? its.exchange(*action) : its.read().value;
  if (old != nullptr) *old = before;
}

sigset_t kernel_mask(const sigset_t& program) noexcept {
  sigset_t result = program;
  if (sigismember(&program, SIGSEGV) == 1)
    sigaddset(&result, stand_in);
  else
    sigdelset(&result, stand_in);
  sigdelset(&result, SIGSEGV);
  return result;
}

sigset_t program_mask(const sigset_t& kernel) noexcept {
  sigset_t result = kernel;
  if (sigismember(&kernel, stand_in) == 1) sigaddset(&result, SIGSEGV);
  return result;
}

signals_blocked::signals_blocked() noexcept {
  sigset_t all;
  sigfillset(&all);
  all = kernel_mask(all);
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before_, kernel_mask_bytes);
}

signals_blocked::~signals_blocked() { change_mask(SIG_SETMASK, before_); }

void translate_current_mask() noexcept {
  sigset_t mask;
  sigemptyset(&mask);
  ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, kernel_mask_bytes);
  if (sigismember(&mask, SIGSEGV) == 1) change_mask(SIG_SETMASK, kernel_mask(mask));
}

}  // namespace hpe::os
