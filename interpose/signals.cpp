// Interposes the functions that set signal actions and signal masks. runtime/os/signals.h implements two rules. After
// hpe has installed its handlers, hpe only stores the program's actions for SIGSEGV and, under hpe run --check, for
// SIGTRAP instead of installing them. From
// the moment this library is loaded, SIGSEGV is never blocked in the kernel, so that hpe can also handle faults of
// threads that started before hpe. Calls for all other signals are passed to the next library.
//
// Not interposed: sigwait, signalfd, sigpending and the interface of 4.2BSD (sigblock, sigsetmask, sigpause).

#undef _FORTIFY_SOURCE  // with it, the header would define an inline ppoll, which conflicts with the definition below

#include "runtime/os/signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <cerrno>
#include <csignal>

#include "runtime/os/next_function.h"

#define HPE_INTERPOSE extern "C" __attribute__((visibility("default")))

namespace {

using hpe::os::kernel_mask;
using hpe::os::next_function;
using hpe::os::program_mask;

using handler = void (*)(int);

// Translates the program's signal mask to the mask for the operating system. If the program's pointer is null, get()
// returns null.
class translated_mask {
 public:
  explicit translated_mask(const sigset_t* program) noexcept
      : given_(program != nullptr), kernel_(given_ ? kernel_mask(*program) : sigset_t{}) {}
  [[nodiscard]] const sigset_t* get() const noexcept { return given_ ? &kernel_ : nullptr; }

 private:
  bool given_;
  sigset_t kernel_;
};

bool blocks_itself(int flags) noexcept { return (flags & SA_NODEFER) == 0; }

// Sets the program's action for a signal of hpe, for functions such as signal() that take only a handler, and returns
// the old handler.
handler exchange_handler(int signal, handler next, int flags) noexcept {
  if (next == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  struct sigaction action {};
  struct sigaction old {};
  action.sa_handler = next;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  if (blocks_itself(flags)) sigaddset(&action.sa_mask, signal);
  hpe::os::exchange_program_action(signal, &action, &old);
  return old.sa_handler;
}

int change_mask(int how, int signal) noexcept {
  sigset_t set;
  sigemptyset(&set);
  if (sigaddset(&set, signal) != 0) return -1;
  return ::sigprocmask(how, &set, nullptr);
}

constexpr int bsd_flags = SA_RESTART;
constexpr int sysv_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER;

// Translates the signal mask that the process has inherited from its parent.
[[gnu::constructor]] void translate_inherited_mask() { hpe::os::translate_current_mask(); }

constinit next_function<decltype(::sigaction)> next_sigaction("sigaction");
constinit next_function<handler(int, handler)> next_signal("signal");
constinit next_function<handler(int, handler)> next_sysv_signal("__sysv_signal");
constinit next_function<handler(int, handler)> next_sigset("sigset");
constinit next_function<int(int)> next_sigignore("sigignore");
constinit next_function<decltype(::sigprocmask)> next_sigprocmask("sigprocmask");
constinit next_function<decltype(::pthread_sigmask)> next_pthread_sigmask("pthread_sigmask");
constinit next_function<decltype(::pthread_attr_setsigmask_np)> next_pthread_attr_setsigmask_np(
    "pthread_attr_setsigmask_np");
constinit next_function<decltype(::pthread_attr_getsigmask_np)> next_pthread_attr_getsigmask_np(
    "pthread_attr_getsigmask_np");
constinit next_function<int(const sigset_t*)> next_sigsuspend("sigsuspend");
constinit next_function<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> next_ppoll("ppoll");
constinit next_function<int(pollfd*, nfds_t, const timespec*, const sigset_t*, std::size_t)> next_ppoll_chk(
    "__ppoll_chk");
constinit next_function<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)> next_pselect("pselect");
constinit next_function<int(int, epoll_event*, int, int, const sigset_t*)> next_epoll_pwait("epoll_pwait");
constinit next_function<int(int, epoll_event*, int, const timespec*, const sigset_t*)> next_epoll_pwait2(
    "epoll_pwait2");

}  // namespace

// ---- actions ----------------------------------------------------------------------------------------------------

HPE_INTERPOSE int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  if (hpe::os::takes(signal)) {
    hpe::os::exchange_program_action(signal, action, old);
    return 0;
  }
  struct sigaction translated {};
  if (action != nullptr) {
    translated = *action;
    translated.sa_mask = kernel_mask(action->sa_mask);
  }
  const int result = next_sigaction(signal, action != nullptr ? &translated : nullptr, old);
  if (result == 0 && old != nullptr) old->sa_mask = program_mask(old->sa_mask);
  return result;
}

HPE_INTERPOSE int __sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  return ::sigaction(signal, action, old);
}

HPE_INTERPOSE handler signal(int signal, handler next) noexcept {
  return hpe::os::takes(signal) ? exchange_handler(signal, next, bsd_flags) : next_signal(signal, next);
}

HPE_INTERPOSE handler ssignal(int number, handler next) noexcept { return ::signal(number, next); }

HPE_INTERPOSE handler bsd_signal(int number, handler next) noexcept { return ::signal(number, next); }

HPE_INTERPOSE handler __sysv_signal(int signal, handler next) noexcept {
  return hpe::os::takes(signal) ? exchange_handler(signal, next, sysv_flags) : next_sysv_signal(signal, next);
}

HPE_INTERPOSE handler sysv_signal(int number, handler next) noexcept { return ::__sysv_signal(number, next); }

HPE_INTERPOSE int sigignore(int signal) noexcept {
  if (!hpe::os::takes(signal)) return next_sigignore(signal);
  exchange_handler(signal, SIG_IGN, 0);
  return 0;
}

// sigset() has two meanings: it sets the action, or, with SIG_HOLD, blocks the signal and does not change the action.
HPE_INTERPOSE handler sigset(int signal, handler next) noexcept {
  if (!hpe::os::takes(signal)) return next_sigset(signal, next);
  sigset_t before;
  sigset_t its;
  sigemptyset(&its);
  sigaddset(&its, signal);
  const bool hold = next == SIG_HOLD;
  struct sigaction old {};
  hpe::os::exchange_program_action(signal, nullptr, &old);
  if (!hold && exchange_handler(signal, next, 0) == SIG_ERR) return SIG_ERR;
  ::sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &its, &before);
  return sigismember(&before, signal) == 1 ? SIG_HOLD : old.sa_handler;
}

// ---- masks ------------------------------------------------------------------------------------------------------

HPE_INTERPOSE int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  const int result = next_sigprocmask(how, translated_mask(set).get(), old);
  if (result == 0 && old != nullptr) *old = program_mask(*old);
  return result;
}

HPE_INTERPOSE int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  const int result = next_pthread_sigmask(how, translated_mask(set).get(), old);
  if (result == 0 && old != nullptr) *old = program_mask(*old);
  return result;
}

HPE_INTERPOSE int pthread_attr_setsigmask_np(pthread_attr_t* attributes, const sigset_t* set) {
  return next_pthread_attr_setsigmask_np(attributes, translated_mask(set).get());
}

HPE_INTERPOSE int pthread_attr_getsigmask_np(const pthread_attr_t* attributes, sigset_t* set) {
  const int result = next_pthread_attr_getsigmask_np(attributes, set);
  if (result == 0) *set = program_mask(*set);
  return result;
}

HPE_INTERPOSE int sighold(int signal) noexcept { return change_mask(SIG_BLOCK, signal); }

HPE_INTERPOSE int sigrelse(int signal) noexcept { return change_mask(SIG_UNBLOCK, signal); }

HPE_INTERPOSE int sigsuspend(const sigset_t* set) { return next_sigsuspend(translated_mask(set).get()); }

HPE_INTERPOSE int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* set) {
  return next_ppoll(fds, count, timeout, translated_mask(set).get());
}

// Programs that are compiled with _FORTIFY_SOURCE call this function in place of ppoll.
HPE_INTERPOSE int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* set,
                              std::size_t fds_bytes) {
  return next_ppoll_chk(fds, count, timeout, translated_mask(set).get(), fds_bytes);
}

HPE_INTERPOSE int pselect(int count, fd_set* read, fd_set* write, fd_set* except, const timespec* timeout,
                          const sigset_t* set) {
  return next_pselect(count, read, write, except, timeout, translated_mask(set).get());
}

HPE_INTERPOSE int epoll_pwait(int epoll, epoll_event* events, int capacity, int timeout, const sigset_t* set) {
  return next_epoll_pwait(epoll, events, capacity, timeout, translated_mask(set).get());
}

HPE_INTERPOSE int epoll_pwait2(int epoll, epoll_event* events, int capacity, const timespec* timeout,
                               const sigset_t* set) {
  return next_epoll_pwait2(epoll, events, capacity, timeout, translated_mask(set).get());
}
