#include "runtime/os/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>
#include <cstring>

#include "hpe/error.hpp"
#include "tests/no_more_threads.h"

namespace {

using hpe::os::start_thread;

TEST(Thread, TakesNoSignalOfTheProgramAndBearsItsName) {
  char name[16] = {};
  sigset_t inside;
  start_thread("hpe-test", [&] {
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    ::pthread_sigmask(SIG_BLOCK, nullptr, &inside);
  }).join();
  EXPECT_STREQ(name, "hpe-test");
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGPROF, SIGRTMIN + 3})
    EXPECT_EQ(sigismember(&inside, signal), 1) << ::strsignal(signal);
  EXPECT_EQ(sigismember(&inside, SIGSEGV), 0) << "hpe also serves page faults of this thread";
  sigset_t outside;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &outside);
  EXPECT_EQ(sigismember(&outside, SIGINT), 0) << "the caller's signal mask is unchanged";
}

TEST(Thread, AFailedStartNamesTheLimits) {
  const hpe::testing::no_more_threads here;
  try {
    start_thread("hpe-test", [] {}).join();
    FAIL() << "a thread was started";
  } catch (const hpe::error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_SYSTEM);
    for (const char* const word : {"hpe-test", "RLIMIT_NPROC", "RLIMIT_AS", "RLIMIT_DATA", "pids.max"})
      EXPECT_NE(std::strstr(e.what(), word), nullptr) << e.what();
  }
}

}  // namespace
