#pragma once

/// Each test of signals runs in a child process, because the test changes the process or ends it.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>

#include "tests/call_site.h"

/// Runs the body in a child whose action for SIGSEGV is the default and that blocks no signal, and returns the child's
/// wait status. If the body returns, the exit status is 0; if the body hangs, SIGALRM ends the child after 10 s.
inline int status_of_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    struct sigaction none {};
    none.sa_handler = SIG_DFL;
    ::sigaction(SIGSEGV, &none, nullptr);
    sigset_t nothing;
    sigemptyset(&nothing);
    ::sigprocmask(SIG_SETMASK, &nothing, nullptr);
    ::alarm(10);
    body();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

inline void expect_success(const std::function<void()>& body) {
  const int status = status_of_child(body);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
}

inline void expect_segv(const std::function<void()>& body) {
  const int status = status_of_child(body);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << "wait status " << status;
}

/// Called in the body: ends the child with a failure unless the condition holds.
inline void check(bool ok, hpe::testing::call_site where = hpe::testing::call_site::here()) {
  if (ok) return;
  std::fprintf(stderr, "%s:%d: check failed in the child\n", where.file, where.line);
  ::_exit(1);
}

/// Returns a page that is not one of our pages, so any access to it is a fault of the program.
inline volatile char* foreign_page() {
  return static_cast<char*>(::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

inline void open_foreign_page(void* address) {
  ::mprotect(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) & ~std::uintptr_t{4095}), 4096,
             PROT_READ | PROT_WRITE);
}

inline struct sigaction action_with(void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigemptyset(&action.sa_mask);
  return action;
}
