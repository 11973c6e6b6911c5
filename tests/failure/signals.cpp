// Signals that arrive while hpe works, and signal handlers of the program that use hpe memory.

#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/failure/child.h"

namespace {

using namespace failure_test;
using hpe::inout;
using numbers = hpe::array<std::uint32_t>;

constexpr std::size_t mebi = std::size_t{1} << 20;

std::uint32_t* touched_by_handler = nullptr;
std::size_t touched_count = 0;
std::atomic<std::uint32_t> handled{0};

void touch(int /*signal*/) {
  const std::uint32_t n = handled++;
  touched_by_handler[n * 7919 % touched_count] += 1;
}

// Each handler sets the next alarm, so that the thread makes progress between two alarms even if a handler runs for a
// long time.
const itimerval soon{{0, 0}, {0, 1000}};
void touch_again_soon(int signal) {
  touch(signal);
  ::setitimer(ITIMER_REAL, &soon, nullptr);
}

void increment(const numbers& a) {
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), a.size(), 1, 0}, inout(a));
}

TEST(Signals, AHandlerFaultsWhileTheThreadThatItInterruptsWaitsInAFault) {
  const ended child = run_child(
      [] {
        const numbers a(mebi / 4);  // 256 blocks; in each round, the host waits for each block
        const numbers b(mebi);
        touched_by_handler = b.data();
        touched_count = b.size();
        ::signal(SIGALRM, touch_again_soon);
        // Another thread, which blocks the signal, launches the kernels, because a handler that interrupts a call of
        // hpe must not wait for this call.
        std::atomic<std::uint32_t> wanted{0};
        std::atomic<std::uint32_t> launched{0};
        sigset_t alarm;
        sigemptyset(&alarm);
        sigaddset(&alarm, SIGALRM);
        ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
        constexpr std::uint32_t rounds = 8;
        std::thread launcher([&] {
          while (launched < rounds) {
            while (wanted == launched) std::this_thread::yield();
            hpe::launch(test_kernel().nothing, hpe::grid(1), {nullptr}, inout(b));
            increment(a);
            ++launched;
          }
        });
        ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
        ::setitimer(ITIMER_REAL, &soon, nullptr);
        for (std::uint32_t round = 1; round <= rounds; ++round) {
          ++wanted;
          while (launched < round) std::this_thread::yield();
          for (std::size_t i = 0; i < a.size(); i += 100) check(a[i] == round);
        }
        ::signal(SIGALRM, SIG_IGN);
        launcher.join();
        std::uint32_t sum = 0;
        for (const std::uint32_t x : b.span()) sum += x;
        check(handled > 5 && sum == handled, std::to_string(sum) + " of " + std::to_string(handled));
      },
      {{"HPE_BLOCK_SIZE", "4k"}, {"HPE_PREFETCH_WINDOW", "0"}});
  EXPECT_TRUE(child.well()) << child;
}

// Returns the names of the threads of this process that do not block the signal.
std::string threads_that_take(int signal) {
  std::string names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(entry.path() / "status");
    std::string name;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Name:")) name = line.substr(6);
      if (!line.starts_with("SigBlk:")) continue;
      const auto blocked = std::stoull(line.substr(8), nullptr, 16);
      if ((blocked >> (signal - 1) & 1) == 0) names += name + ' ';
    }
  }
  return names;
}

bool has_thread(const char* wanted) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm") >> std::ws, name);
    if (name == wanted) return true;
  }
  return false;
}

// A signal for the process goes to any thread that does not block it. All threads of the program block it; hpe's
// threads must block it too.
TEST(Signals, AreNotForTheThreadsOfTheRuntime) {
  const ended child = run_child(
      [] {
        const numbers a(mebi);
        const std::vector<std::uint32_t> source(mebi, 7);
        check(hpeMemcpy(a.data(), source.data(), mebi * 4) == HPE_SUCCESS);
        increment(a);
        check(a[5] == 8);
        for (const char* const name : {"hpe-copy", "hpe-monitor", "hpe-trace"}) check(has_thread(name), name);
        touched_by_handler = a.data();
        touched_count = a.size();
        ::signal(SIGUSR1, touch);
        sigset_t usr1;
        sigemptyset(&usr1);
        sigaddset(&usr1, SIGUSR1);
        ::pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
        check(threads_that_take(SIGUSR1).empty(), threads_that_take(SIGUSR1));
        ::kill(::getpid(), SIGUSR1);
        std::this_thread::sleep_for(20ms);
        check(handled == 0, "a thread of the runtime ran the program's handler");
        ::pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr);
        check(handled == 1);
      },
      {{"HPE_COPY_THREADS", "3"}, {"HPE_TRACE", "/dev/null"}});
  EXPECT_TRUE(child.well()) << child;
}

void* read_all(void* array) {
  for (const std::uint32_t x : static_cast<numbers*>(array)->span()) check(x == 1);
  return nullptr;
}

TEST(Signals, ThreadsWithSmallStacksFault) {
  const ended child = run_child([] {
    numbers a(mebi);
    increment(a);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    // The smallest possible stack, plus the size of the machine's signal frame.
    const auto frame = static_cast<std::size_t>(::sysconf(_SC_MINSIGSTKSZ));
    const std::size_t size = (static_cast<std::size_t>(PTHREAD_STACK_MIN) + frame + 8191) / 4096 * 4096;
    check(::pthread_attr_setstacksize(&attributes, size) == 0);
    pthread_t thread{};
    check(::pthread_create(&thread, &attributes, read_all, &a) == 0);
    ::pthread_join(thread, nullptr);
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(Signals, ThreadsWithAnAlternateStackFaultOnIt) {
  const ended child = run_child([] {
    numbers a(mebi);
    increment(a);
    std::thread([&] {
      stack_t stack{};
      stack.ss_size = static_cast<std::size_t>(::sysconf(_SC_SIGSTKSZ));
      stack.ss_sp = ::mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      check(::sigaltstack(&stack, nullptr) == 0);
      read_all(&a);
    }).join();
  });
  EXPECT_TRUE(child.well()) << child;
}

}  // namespace
