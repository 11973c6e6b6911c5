#include "runtime/os/futex.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <new>
#include <thread>
#include <vector>

namespace {

using namespace hpe;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

void wait_until_equal(const os::futex_word& word, std::uint32_t wanted) {
  for (std::uint32_t seen = word.load(); seen != wanted; seen = word.load()) os::futex_wait(word, seen);
}

void set(os::futex_word& word, std::uint32_t value) {
  word.store(value);
  os::futex_wake_all(word);
}

TEST(Futex, ReturnsAtOnceWhenTheWordDiffers) {
  const os::futex_word word{5};
  errno = EDOM;
  os::futex_wait(word, 4);
  os::futex_wait_until(word, 4, clock::time_point::max());
  EXPECT_EQ(errno, EDOM);
}

TEST(Futex, TheDeadlineEndsTheWait) {
  const os::futex_word word{0};
  const auto begin = clock::now();
  os::futex_wait_until(word, 0, begin + 30ms);
  EXPECT_GE(clock::now() - begin, 30ms);
  EXPECT_LT(clock::now() - begin, 5s);
  os::futex_wait_until(word, 0, begin);
  os::futex_wait_until(word, 0, clock::time_point::min());
  os::futex_wait_until(word, 0, clock::time_point{});
}

TEST(Futex, WakesEveryThread) {
  os::futex_word word{0};
  int data = 0;
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 3; ++i)
    sleepers.emplace_back([&] {
      wait_until_equal(word, 1);
      EXPECT_EQ(data, 42);
    });
  std::this_thread::sleep_for(10ms);
  data = 42;
  set(word, 1);
  for (std::thread& t : sleepers) t.join();
}

TEST(Futex, PassesABallBetweenThreads) {
  constexpr std::uint32_t rounds = 2000;
  os::futex_word word{0};
  std::thread other([&] {
    for (std::uint32_t i = 0; i < rounds; ++i) {
      wait_until_equal(word, 2 * i + 1);
      set(word, 2 * i + 2);
    }
  });
  for (std::uint32_t i = 0; i < rounds; ++i) {
    set(word, 2 * i + 1);
    wait_until_equal(word, 2 * i + 2);
  }
  other.join();
}

TEST(Futex, ServesProcesses) {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* words = new (page) os::futex_word[2]{};
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    wait_until_equal(words[0], 1);
    set(words[1], 1);
    ::_exit(0);
  }
  std::this_thread::sleep_for(10ms);
  set(words[0], 1);
  const auto deadline = clock::now() + 10s;
  while (words[1].load() == 0 && clock::now() < deadline) os::futex_wait_until(words[1], 0, deadline);
  EXPECT_EQ(words[1].load(), 1u);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::munmap(page, 4096);
}

TEST(Futex, ASignalEndsTheWaitAndKeepsErrno) {
  const os::futex_word word{0};
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  std::atomic<bool> done{false};
  std::thread sleeper([&] {
    errno = EDOM;
    os::futex_wait(word, 0);
    EXPECT_EQ(errno, EDOM);
    done = true;
  });
  const auto give_up = clock::now() + 10s;
  while (!done && clock::now() < give_up) {
    ::pthread_kill(sleeper.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_TRUE(done);
  sleeper.join();
}

}  // namespace
