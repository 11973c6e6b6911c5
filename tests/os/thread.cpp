#include "runtime/os/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <csignal>
#include <cstring>
#include <thread>

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

// A thread of the program that keeps to one core may be the first to need hpe's threads, which serve all threads.
TEST(Thread, LeavesTheCoresOfItsCreator) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "the process has one core";
  cpu_set_t inside;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    start_thread("hpe-test", [&] {
      hpe::os::leave_cores_of_creator();
      ::sched_getaffinity(0, sizeof inside, &inside);
    }).join();
  }).join();
  EXPECT_TRUE(CPU_EQUAL(&inside, &all));
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
