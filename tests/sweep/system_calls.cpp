// Functions that replace the runtime's system calls (by the linker's --wrap). They count the calls, and make the call
// that the injector chooses fail as it could fail in the operating system. System calls that do not fail when used
// correctly are not replaced: close always frees the descriptor, munmap of a whole mapping needs no memory, and waitid
// finds a child.

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <memory>
#include <system_error>
#include <thread>

#include "tests/sweep/injection.h"

namespace {

bool fails(const char* what, int with) noexcept {
  if (!sweep::injected().due(sweep::failure::system_call, what)) return false;
  errno = with;
  return true;
}

}  // namespace

extern "C" {

// Defines a replacement for a function with these parameters. If the call must fail, it sets errno and returns
// `failed`.
#define SWEEP_CALL(type, name, error_number, failed, parameters, arguments) \
  type __real_##name parameters;                                            \
  type __wrap_##name parameters { return fails(#name, error_number) ? (failed) : __real_##name arguments; }

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
SWEEP_CALL(int, accept4, EMFILE, -1, (int s, sockaddr* a, socklen_t* n, int f), (s, a, n, f))
SWEEP_CALL(int, bind, ENOMEM, -1, (int s, const sockaddr* a, socklen_t n), (s, a, n))
SWEEP_CALL(int, connect, ENOMEM, -1, (int s, const sockaddr* a, socklen_t n), (s, a, n))
SWEEP_CALL(int, eventfd, EMFILE, -1, (unsigned n, int f), (n, f))
SWEEP_CALL(int, fallocate, ENOSPC, -1, (int file, int mode, off_t at, off_t bytes), (file, mode, at, bytes))
SWEEP_CALL(int, fstat, EIO, -1, (int file, struct stat* s), (file, s))
SWEEP_CALL(int, ftruncate, ENOSPC, -1, (int file, off_t bytes), (file, bytes))
SWEEP_CALL(int, getsockopt, ENOBUFS, -1, (int s, int l, int o, void* v, socklen_t* n), (s, l, o, v, n))
SWEEP_CALL(int, listen, ENOMEM, -1, (int s, int n), (s, n))
SWEEP_CALL(int, madvise, ENOMEM, -1, (void* p, size_t n, int a), (p, n, a))
SWEEP_CALL(int, memfd_create, EMFILE, -1, (const char* name, unsigned f), (name, f))
SWEEP_CALL(void*, mmap, ENOMEM, MAP_FAILED, (void* p, size_t n, int pr, int f, int fd, off_t o), (p, n, pr, f, fd, o))
SWEEP_CALL(int, mprotect, ENOMEM, -1, (void* p, size_t n, int a), (p, n, a))
SWEEP_CALL(int, poll, ENOMEM, -1, (pollfd * p, nfds_t n, int t), (p, n, t))
SWEEP_CALL(ssize_t, pread, EIO, -1, (int file, void* p, size_t n, off_t o), (file, p, n, o))
SWEEP_CALL(ssize_t, pwrite, ENOSPC, -1, (int file, const void* p, size_t n, off_t o), (file, p, n, o))
SWEEP_CALL(ssize_t, recvmsg, ENOMEM, -1, (int s, msghdr* m, int f), (s, m, f))
SWEEP_CALL(ssize_t, sendmsg, ENOBUFS, -1, (int s, const msghdr* m, int f), (s, m, f))
SWEEP_CALL(int, setsockopt, ENOBUFS, -1, (int s, int l, int o, const void* v, socklen_t n), (s, l, o, v, n))
SWEEP_CALL(int, socket, EMFILE, -1, (int d, int t, int p), (d, t, p))
SWEEP_CALL(int, socketpair, EMFILE, -1, (int d, int t, int p, int* ends), (d, t, p, ends))

int __real_posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                       const posix_spawnattr_t* attributes, char* const* arguments, char* const* variables);
int __wrap_posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                       const posix_spawnattr_t* attributes, char* const* arguments, char* const* variables) {
  return fails("posix_spawn", EAGAIN) ? EAGAIN
                                      : __real_posix_spawn(pid, path, actions, attributes, arguments, variables);
}

int __real___clone(int (*function)(void*), void* stack, int flags, void* argument, ...);
int __wrap___clone(int (*function)(void*), void* stack, int flags, void* argument, ...) {
  va_list rest;
  va_start(rest, argument);
  void* const a = va_arg(rest, void*);
  void* const b = va_arg(rest, void*);
  void* const c = va_arg(rest, void*);
  va_end(rest);
  return fails("clone", EAGAIN) ? -1 : __real___clone(function, stack, flags, argument, a, b, c);
}

int __real_fcntl(int file, int command, ...);
int __wrap_fcntl(int file, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return fails("fcntl", ENOLCK) ? -1 : __real_fcntl(file, command, argument);
}

long __real_syscall(long number, ...);
// Always passes on six arguments. If the caller passed fewer, the function reads beyond them, which AddressSanitizer
// would report.
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  long a[6];
  for (long& each : a) each = va_arg(rest, long);
  va_end(rest);
  const bool failed = (number == SYS_pidfd_open && fails("pidfd_open", EMFILE)) ||
                      (number == SYS_clone3 && fails("clone3", EAGAIN)) ||
                      (number == SYS_clone && fails("clone", EAGAIN));
  return failed ? -1 : __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"

// The function by which std::thread starts the runtime's threads.
using state_pointer = std::unique_ptr<std::thread::_State>;
void real_start_thread(std::thread* self, state_pointer state, void (*depend)()) asm(
    "__real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");
void failing_start_thread(std::thread* self, state_pointer state, void (*depend)()) asm(
    "__wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");

void failing_start_thread(std::thread* self, state_pointer state, void (*depend)()) {
  if (fails("pthread_create", EAGAIN)) throw std::system_error(EAGAIN, std::generic_category());
  real_start_thread(self, std::move(state), depend);
}
