// Tests children of fork, programs that exec starts, and owners of devices that are killed.

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <filesystem>
#include <numeric>
#include <set>
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

int status_of(pid_t process) {
  int status = -1;
  check(::waitpid(process, &status, 0) == process);
  return status;
}

bool ended_well(pid_t process) {
  const int status = status_of(process);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void increment(const numbers& a) {
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), a.size(), 1, 0}, inout(a));
}

TEST(Start, OfSeveralThreadsAtOnceIsOne) {
  const ended child = run_child([] {
    constexpr int count = 4;
    std::array<void*, count> memory{};
    std::barrier together(count);
    std::vector<std::thread> threads;
    for (void*& p : memory)
      threads.emplace_back([&] {
        together.arrive_and_wait();
        check(hpeMalloc(&p, mebi) == HPE_SUCCESS, hpeGetLastErrorMessage());
      });
    for (std::thread& t : threads) t.join();
    for (void* const p : memory) check(hpeFree(p) == HPE_SUCCESS, hpeGetLastErrorMessage());
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(Fork, TheChildGetsAnErrorAndTheParentGoesOn) {
  const ended child = run_child([] {
    const numbers a(mebi);
    std::iota(a.begin(), a.end(), 0U);
    increment(a);
    const pid_t forked = ::fork();
    if (forked == 0) {
      void* p = nullptr;
      int count = 0;
      hpePointerInfo info{};
      check(hpeInit() == HPE_ERROR_FORKED);
      check(hpeMalloc(&p, 100) == HPE_ERROR_FORKED && p == nullptr);
      check(hpeFree(a.data()) == HPE_ERROR_FORKED);
      check(hpeMemcpy(&count, a.data(), 4) == HPE_ERROR_FORKED);
      check(hpeGetDeviceCount(&count) == HPE_ERROR_FORKED);
      check(hpeGetPointerInfo(a.data(), &info) == HPE_ERROR_FORKED);
      check(hpeSynchronize() == HPE_ERROR_FORKED);
      check(std::string(hpeGetLastErrorMessage()).find("fork") != std::string::npos, hpeGetLastErrorMessage());
      std::exit(0);  // runs the destructors and exit handlers, as in a program
    }
    check(ended_well(forked));
    increment(a);
    for (std::size_t i = 0; i < a.size(); ++i) check(a[i] == i + 2);
    check(hpeSynchronize() == HPE_SUCCESS);
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(Fork, TheChildDiesOfTheParentsMemoryAndSaysWhy) {
  const ended child = run_child([] {
    const numbers a(mebi);
    for (const bool on_device : {false, true}) {
      std::iota(a.begin(), a.end(), 0U);
      if (on_device) increment(a);
      const pid_t forked = ::fork();
      if (forked == 0) {
        ::alarm(10);
        check(a[0] == 77);
        ::_exit(0);
      }
      const int status = status_of(forked);
      check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "wait status " + std::to_string(status));
      for (std::size_t i = 0; i < a.size(); ++i) check(a[i] == i + (on_device ? 1 : 0));
    }
  });
  EXPECT_TRUE(child.well()) << child;
  EXPECT_TRUE(child.said("memory of the parent process")) << child;
}

TEST(Fork, ThreadsAtWorkAreNotDisturbed) {
  const ended child = run_child([] {
    const numbers a(mebi);
    std::atomic<bool> stop{false};
    std::atomic<std::uint32_t> rounds{0};
    std::thread worker([&] {
      while (!stop) {
        increment(a);
        for (const std::uint32_t x : a.span()) check(x == rounds + 1);
        ++rounds;
        rounds.notify_one();
      }
    });
    for (int i = 0; i < 20; ++i) {
      rounds.wait(0);
      const pid_t forked = ::fork();
      // The error allocates its text. In the child of a process with several threads, a sanitizer's allocator may be
      // locked.
      if (forked == 0) ::_exit(sanitizer_needs_mappings || hpeInit() == HPE_ERROR_FORKED ? 0 : 1);
      check(ended_well(forked));
    }
    stop = true;
    worker.join();
  });
  EXPECT_TRUE(child.well()) << child;
}

void exec_user() {
  ::execl(HPE_EXECUTED_PROGRAM, HPE_EXECUTED_PROGRAM, nullptr);
  check(false, "exec failed");
}

TEST(Exec, AChildOfForkUsesHpeAfterwards) {
  const ended child = run_child([] {
    const numbers a(mebi);
    increment(a);
    const pid_t forked = ::fork();
    if (forked == 0) exec_user();
    check(ended_well(forked));
    increment(a);
    for (const std::uint32_t x : a.span()) check(x == 2);
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(Exec, InPlaceOfTheProgramEndsTheOldDevices) {
  const ended child = run_child([] {
    const numbers a(mebi);
    increment(a);
    hpe::synchronize();
    exec_user();
  });
  EXPECT_TRUE(child.well()) << child;
}

void wait_for_all_children() {
  const numbers a(mebi);
  increment(a);
  if (::fork() == 0) ::_exit(0);
  ::alarm(10);
  int children = 0;
  while (::wait(nullptr) > 0) ++children;
  check(children == 1 && errno == ECHILD);
  increment(a);
  for (const std::uint32_t x : a.span()) check(x == 2);
}

TEST(Wait, ForAllChildrenEnds) {
  const ended child = run_child(wait_for_all_children);
  EXPECT_TRUE(child.well()) << child;
}

// The first process of a container also adopts orphans.
TEST(Wait, ForAllChildrenEndsInAProcessThatAdoptsOrphans) {
  const ended child = run_child([] {
    check(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    wait_for_all_children();
    for (int d = 0; d < 3; ++d) kill_device(d);
    const auto end = std::chrono::steady_clock::now() + 2s;
    while (::waitpid(-1, nullptr, __WALL | WNOHANG) >= 0)
      check(std::chrono::steady_clock::now() < end, "a process of a device has not ended");
    check(errno == ECHILD);
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(Owner, ThatAdoptsOrphansLeavesNothingWhenItIsKilled) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const ended child = run_child([&] {
    check(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    const numbers a(mebi);
    const pid_t device = process_of_device(0);
    check(::write(ends[1], &device, sizeof device) == sizeof device);
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_TRUE(child.by_signal(SIGKILL)) << child;
  ::close(ends[1]);
  pid_t device = 0;
  ASSERT_EQ(::read(ends[0], &device, sizeof device), static_cast<ssize_t>(sizeof device));
  // read() returns 0 when no process has the pipe's write end open: neither the device's process nor another process
  // that the owner has started.
  EXPECT_EQ(::read(ends[0], &device, sizeof device), 0);
  const auto end = std::chrono::steady_clock::now() + 2s;
  while (is_running(device)) ASSERT_LT(std::chrono::steady_clock::now(), end) << "process " << device << " is left";
  ::close(ends[0]);
}

// Returns the names of hpe's files in /dev/shm; other programs on the machine may make and remove files there at any
// time.
std::set<std::string> shared_memory() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().starts_with("hpe")) names.insert(entry.path().filename());
  return names;
}

TEST(Owner, KilledInTheMiddleOfWorkLeavesNothing) {
  const auto before = shared_memory();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const ended child = run_child([&] {
    const numbers a(4 * mebi);
    std::array<pid_t, 3> devices{};
    for (int d = 0; d < 3; ++d) {
      hpe::launch_on(d, test_kernel().increment, hpe::grid(1), {a.data(), a.size(), 1, 100000}, inout(a));
      devices[static_cast<std::size_t>(d)] = process_of_device(d);
    }
    check(::write(ends[1], devices.data(), sizeof devices) == sizeof devices);
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_TRUE(child.by_signal(SIGKILL)) << child;
  std::array<pid_t, 3> devices{};
  ASSERT_EQ(::read(ends[0], devices.data(), sizeof devices), static_cast<ssize_t>(sizeof devices));
  const auto end = std::chrono::steady_clock::now() + 2s;
  for (const pid_t device : devices)
    while (is_running(device)) ASSERT_LT(std::chrono::steady_clock::now(), end) << "process " << device << " is left";
  EXPECT_EQ(shared_memory(), before);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Owner, ThatEndsByItselfLeavesNothing) {
  const auto before = shared_memory();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const ended child = run_child([&] {
    const numbers a(mebi);
    const pid_t device = process_of_device(0);
    check(::write(ends[1], &device, sizeof device) == sizeof device);
    std::exit(0);
  });
  EXPECT_TRUE(child.well()) << child;
  pid_t device = 0;
  ASSERT_EQ(::read(ends[0], &device, sizeof device), static_cast<ssize_t>(sizeof device));
  const auto end = std::chrono::steady_clock::now() + 2s;
  while (is_running(device)) ASSERT_LT(std::chrono::steady_clock::now(), end) << "process " << device << " is left";
  EXPECT_EQ(shared_memory(), before);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
