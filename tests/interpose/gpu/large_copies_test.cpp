// memcpy of large ranges to pinned memory, which hpe copies with several threads. The program must not notice: its
// signal handlers, its children and its cancelled threads find what they find with libc's memcpy.
#include <cuda.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "tests/interpose/gpu/driver_under_test.h"

namespace {

constexpr std::size_t large = std::size_t{64} << 20;
constexpr std::size_t page = 4096;

void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;

// Whole pages of memory, pinned or not.
struct give_back {
  std::size_t bytes;
  void operator()(std::uint8_t* p) const {
    cuMemHostUnregister(p);
    ::munmap(p, bytes);
  }
};
using pages = std::unique_ptr<std::uint8_t[], give_back>;

pages filled_with(std::uint8_t value, std::size_t bytes) {
  void* const p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  std::memset(p, value, bytes);
  return pages(static_cast<std::uint8_t*>(p), give_back{bytes});
}

pages pinned_with(std::uint8_t value, std::size_t bytes) {
  pages result = filled_with(value, bytes);
  if (cuMemHostRegister(result.get(), bytes, 0) != CUDA_SUCCESS) throw std::bad_alloc();
  return result;
}

bool equal(const pages& a, const pages& b, std::size_t bytes) { return std::memcmp(a.get(), b.get(), bytes) == 0; }

std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator{});
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_NODEFER;
  ASSERT_EQ(::sigaction(signal, &action, nullptr), 0);
}

// Sends SIGALRM to the calling thread after some time.
std::jthread alarm_after(std::chrono::microseconds time) {
  return std::jthread([time, waiting = ::pthread_self()] {
    std::this_thread::sleep_for(time);
    ::pthread_kill(waiting, SIGALRM);
  });
}

class LargeCopies : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0()); }
};

// An allocator may call memcpy under its lock, so memcpy must not allocate memory, and threads need memory. They start
// when the program pins a large buffer.
TEST_F(LargeCopies, StartNoThreads) {
  const std::ptrdiff_t before = threads();
  const pages small = pinned_with(2, large / 64);
  const pages from = filled_with(1, large);
  const pages other = filled_with(2, large);
  copy(other.get(), from.get(), large);
  EXPECT_EQ(threads(), before);
  const pages to = pinned_with(2, large);
  const std::ptrdiff_t with_helpers = threads();
  EXPECT_GT(with_helpers, before);
  copy(to.get(), from.get(), large);
  EXPECT_EQ(threads(), with_helpers);
  EXPECT_TRUE(equal(from, to, large));
}

// The driver itself calls memcpy while it holds its locks.
TEST_F(LargeCopies, DoNotCallTheDriver) {
  const pages from = filled_with(1, large);
  const pages other = filled_with(3, large);
  const pages to = pinned_with(2, large);
  const unsigned before = stand_in::calls("cuPointerGetAttribute");
  copy(to.get(), from.get(), large);
  copy(other.get(), from.get(), large);
  EXPECT_EQ(stand_in::calls("cuPointerGetAttribute"), before);
  EXPECT_TRUE(equal(from, to, large));
  EXPECT_TRUE(equal(from, other, large));
}

sigjmp_buf before_the_copy;

TEST_F(LargeCopies, AreOverWhenAHandlerLeavesThem) {
  handle(SIGALRM, [](int) { ::siglongjmp(before_the_copy, 1); });
  constexpr std::size_t bytes = 4 * large;
  const pages from = filled_with(1, bytes);
  const pages to = pinned_with(2, bytes);
  const auto copied = [&] {
    std::size_t result = 0;
    for (std::size_t at = 0; at < bytes; at += page) result += to[at] == 1 ? 1 : 0;
    return result;
  };
  for (static int round = 0; round < 6; ++round) {
    std::memset(to.get(), 2, bytes);
    static std::jthread alarm;
    if (::sigsetjmp(before_the_copy, 1) == 0) {
      alarm = alarm_after(std::chrono::microseconds(2000 + 3000 * round));
      copy(to.get(), from.get(), bytes);
      while (true) ::pause();  // the alarm comes after the copy
    }
    const std::size_t at_once = copied();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(copied(), at_once) << "round " << round;
  }
}

TEST_F(LargeCopies, MayBeInterruptedByAFork) {
  static volatile int failed;
  failed = 0;
  handle(SIGALRM, [](int) {
    if (::fork() < 0) failed = 1;  // the child goes on with the copy, like the parent
  });
  const pid_t parent = ::getpid();
  const pages from = filled_with(1, large);
  const pages to = pinned_with(2, large);
  for (int round = 0; round < 5; ++round) {
    std::memset(to.get(), 2, large);
    const std::jthread alarm = alarm_after(std::chrono::microseconds(1000 + 2000 * round));
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(40);
    do copy(to.get(), from.get(), large);
    while (std::chrono::steady_clock::now() < until);
    if (::getpid() != parent) ::_exit(equal(from, to, large) ? 0 : 1);
  }
  for (int children = 0; children < 5; ++children) {
    int status = -1;
    for (int tries = 0; tries < 1000 && ::waitpid(-1, &status, WNOHANG) == 0; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(failed, 0);
}

// Programs find changed pages by write protection.
TEST_F(LargeCopies, ReachPagesThatTheProgramsHandlerOpens) {
  static volatile std::size_t faults;
  faults = 0;
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    faults = faults + 1;
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    ::mprotect(reinterpret_cast<void*>(address - address % page), page, PROT_READ | PROT_WRITE);
  };
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGSEGV, &action, &before), 0);
  const pages from = pinned_with(1, large);
  const pages to = filled_with(2, large);
  ASSERT_EQ(::mprotect(to.get() + large / 4, large / 2, PROT_READ), 0);
  copy(to.get(), from.get(), large);
  EXPECT_TRUE(equal(from, to, large));
  EXPECT_EQ(faults, large / 2 / page);
  EXPECT_EQ(::sigaction(SIGSEGV, &before, nullptr), 0);
}

// The data of a thread that may be cancelled at any time: the thread must call only memcpy.
struct forever {
  pages from = filled_with(1, large);
  pages to = pinned_with(2, large);
  std::atomic<bool> copying{false};
};

TEST_F(LargeCopies, EndWithACancelledThread) {
  forever data;
  for (int round = 0; round < 3; ++round) {
    data.copying = false;
    pthread_t thread{};
    const auto run = [](void* argument) -> void* {
      auto& its = *static_cast<forever*>(argument);
      std::uint8_t* const to = its.to.get();
      const std::uint8_t* const from = its.from.get();
      its.copying = true;
      ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
      while (true) copy(to, from, large);
    };
    ASSERT_EQ(::pthread_create(&thread, nullptr, run, &data), 0);
    while (!data.copying) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 7 * round));
    ASSERT_EQ(::pthread_cancel(thread), 0);
    void* result = nullptr;
    ASSERT_EQ(::pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
  }
}

int (*volatile compare)(const void*, const void*, std::size_t) noexcept = std::memcmp;

// Without calls that may throw, so that the thread can end at any instruction.
[[gnu::noinline]] void compare_again_and_again(const std::uint8_t* a, const std::uint8_t* b) noexcept {
  while (compare(a, b, std::size_t{1} << 20) != 0) {
  }
}

// Each comparison ends at the first byte, so that most requests come while hpe looks how the thread may be cancelled.
TEST_F(LargeCopies, ComparisonsEndWithACancelledThread) {
  static const std::vector<std::uint8_t> a(std::size_t{1} << 20, 1), b(std::size_t{1} << 20, 2);
  static void (*volatile run)(const std::uint8_t*, const std::uint8_t*) = compare_again_and_again;
  for (int round = 0; round < 100; ++round) {
    pthread_t thread{};
    const auto start = [](void*) -> void* {
      ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
      run(a.data(), b.data());
      return nullptr;
    };
    ASSERT_EQ(::pthread_create(&thread, nullptr, start, nullptr), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_EQ(::pthread_cancel(thread), 0);
    void* result = nullptr;
    ASSERT_EQ(::pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
  }
}

}  // namespace
