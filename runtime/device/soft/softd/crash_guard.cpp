#include "runtime/device/soft/softd/crash_guard.h"

#include <malloc.h>
#include <sys/mman.h>

#include <array>
#include <csetjmp>
#include <csignal>

#include "runtime/base/error.h"
#include "runtime/ptx/execution/block_range.h"

namespace hpe::device::soft {

namespace {

struct landing {
  sigjmp_buf place;
  crash what;
  const std::atomic<bool>* stop = nullptr;
};

thread_local landing* current = nullptr;

constexpr int stop_signal = SIGUSR2;

std::atomic<std::uint64_t> begun{0}, ended{0};
wait_queue* recovery_queue = nullptr;

[[noreturn]] void leave(landing& guard, const crash& what) {
  guard.what = what;
  begun.fetch_add(1);
  if (recovery_queue != nullptr) recovery_queue->wake_all();
  siglongjmp(guard.place, 1);
}

// A stack for the crash handlers, because the crash may be an overflow of the kernel's own stack.
class alternate_stack {
 public:
  alternate_stack() {
    stack_t stack{};
    stack.ss_size = size;
    stack.ss_sp = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp == MAP_FAILED) throw_system_error("mapping a signal stack");
    if (::sigaltstack(&stack, &before_) != 0) throw_system_error("sigaltstack");
    memory_ = stack.ss_sp;
  }
  alternate_stack(const alternate_stack&) = delete;
  alternate_stack& operator=(const alternate_stack&) = delete;
  ~alternate_stack() {
    ::sigaltstack(&before_, nullptr);
    ::munmap(memory_, size);
  }

 private:
  static constexpr std::size_t size = 64 << 10;
  stack_t before_{};
  void* memory_ = nullptr;
};

void land(int signal, siginfo_t* info, void* context) {
  const bool is_access = (signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0;
  auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (is_access && info->si_code == SI_KERNEL) address = operand_address(*static_cast<const ucontext_t*>(context));
  if (is_access) ptx::land_page_fault(address);
  if (landing* guard = current; guard != nullptr && info->si_code > 0) {
    leave(*guard, {signal, info->si_code, reinterpret_cast<std::uintptr_t>(info->si_addr)});
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void stop(int signal, siginfo_t* info, void* /*context*/) {
  landing* const guard = current;
  if (guard != nullptr && guard->stop != nullptr && guard->stop->load()) leave(*guard, {signal, info->si_code, 0});
}

}  // namespace

void stop_thread(pthread_t thread) noexcept { ::pthread_kill(thread, stop_signal); }

bool is_stop(const crash& what) noexcept { return what.signal == stop_signal; }

crash make_stop() noexcept { return {stop_signal, 0, 0}; }

recoveries count_recoveries() noexcept {
  const std::uint64_t done = ended.load();
  return {begun.load(), done};
}

void wake_at_recoveries(wait_queue& queue) noexcept { recovery_queue = &queue; }

void install_crash_handlers() {
  // This call initialises glibc's allocator before other threads start, because two threads must not initialise it at
  // once. Usually an earlier malloc has initialised it, but not if malloc comes from another library or from
  // AddressSanitizer.
  static_cast<void>(::mallinfo2());
  struct sigaction action {};
  action.sa_sigaction = land;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : std::array{SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    if (::sigaction(signal, &action, nullptr) != 0) throw_system_error("sigaction");
  action.sa_sigaction = stop;
  if (::sigaction(stop_signal, &action, nullptr) != 0) throw_system_error("sigaction");
}

void take_crash_signals() noexcept {
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

std::optional<crash> run_guarded(void (*body)(void*), void* argument, const std::atomic<bool>* stop) {
  static thread_local const alternate_stack stack;
  static_cast<void>(&stack);
  landing guard;
  guard.stop = stop;
  landing* const outer = current;
  if (sigsetjmp(guard.place, 0) != 0) {
    current = outer;
    // siglongjmp does not restore the signal mask here, because saving the mask would cost a system call in each
    // guarded run. So this thread unblocks the crash signals again.
    take_crash_signals();
    // mallinfo2() locks every lock of malloc once. If the abandoned body holds one of these locks, the thread hangs
    // here, and the watchdog ends the process.
    static_cast<void>(::mallinfo2());
    ended.fetch_add(1);
    return guard.what;
  }
  current = &guard;
  try {
    body(argument);
  } catch (...) {
    current = outer;
    throw;
  }
  current = outer;
  return std::nullopt;
}

}  // namespace hpe::device::soft
