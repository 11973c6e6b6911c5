// Tests reports of waits that take longer than HPE_STALL_AFTER. All kernels in this file end eventually, so that their
// programs end, too.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/failure/child.h"

namespace {

using namespace failure_test;
using numbers = hpe::array<std::uint32_t>;

const variables soon{{"HPE_STALL_AFTER", "1"}};
constexpr std::uint32_t long_time = 3'000'000;

std::size_t stalls_told(const ended& child) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = child.text.find("waits since", at)) != std::string::npos; ++at) ++count;
  return count;
}

// Waits for data. A report must name this line, which is the program's innermost line.
[[gnu::noinline]] std::uint32_t touched(const volatile std::uint32_t* at) { return *at; }

void launch_long_kernel(const numbers& data) {
  hpe::launch_on(1, test_kernel().increment, hpe::grid(1), {data.data(), data.size(), 1, long_time}, hpe::inout(data));
}

TEST(Stalls, OfATouchNameTheKernelAndTheLine) {
  const ended child = run_child(
      [] {
        const numbers data(1000, hpe::on_device(1));
        launch_long_kernel(data);
        check(touched(&data[7]) == 1);
      },
      soon);
  EXPECT_TRUE(child.well()) << child;
  EXPECT_EQ(stalls_told(child), 1U) << child;
  EXPECT_TRUE(child.said("its read of 0x")) << child;
  EXPECT_TRUE(child.said("waits for kernel \"increment\" on device 1")) << child;
  EXPECT_TRUE(child.said("stalls.cpp:")) << child;
}

// The thread that reports stalls needs memory for its first message, a std::string.
TEST(Stalls, AreReportedWithoutFreeMemory) {
  if (sanitizer_needs_mappings) GTEST_SKIP() << why_not_sanitized;
  const ended child = run_child(
      [] {
        const numbers data(1000, hpe::on_device(1));
        launch_long_kernel(data);
        rlimit before{};
        check(::getrlimit(RLIMIT_DATA, &before) == 0);
        std::thread relief([before] {
          ::sleep(2);
          ::setrlimit(RLIMIT_DATA, &before);
        });
        const rlimit none{1 << 16, before.rlim_max};
        check(::setrlimit(RLIMIT_DATA, &none) == 0);
        for (std::size_t bytes = 1 << 20; bytes >= 16; bytes /= 2)
          while (std::malloc(bytes) != nullptr) continue;
        const std::uint32_t seen = touched(&data[7]);
        relief.join();
        check(seen == 1);
      },
      soon);
  EXPECT_TRUE(child.well()) << child;
  EXPECT_TRUE(child.said("has waited for more than 1 s; the process has no memory")) << child;
}

TEST(Stalls, OfASynchronizationNameTheKernelAndTheLine) {
  const ended child = run_child(
      [] {
        const numbers data(1000, hpe::on_device(1));
        launch_long_kernel(data);
        check(hpeSynchronize() == HPE_SUCCESS);
      },
      soon);
  EXPECT_TRUE(child.well()) << child;
  EXPECT_EQ(stalls_told(child), 1U) << child;
  EXPECT_TRUE(child.said("it waits for kernel \"increment\" on device 1")) << child;
  EXPECT_TRUE(child.said("stalls.cpp:")) << child;
}

TEST(Stalls, OfTwoThreadsAreTwo) {
  const ended child = run_child(
      [] {
        const numbers data(1000, hpe::on_device(1));
        launch_long_kernel(data);
        std::thread other([&] { check(data[1] == 1); });
        check(data[7] == 1);
        other.join();
      },
      soon);
  EXPECT_TRUE(child.well()) << child;
  EXPECT_EQ(stalls_told(child), 2U) << child;
}

TEST(Stalls, AreNotReportedWithStallAfter0) {
  const ended child = run_child(
      [] {
        const numbers data(1000, hpe::on_device(1));
        launch_long_kernel(data);
        check(data[7] == 1);
      },
      {{"HPE_STALL_AFTER", "0"}});
  EXPECT_TRUE(child.well()) << child;
  EXPECT_EQ(stalls_told(child), 0U) << child;
}

// The call stack contains code that the program made at run time, without unwind tables: `sub $8, %rsp; call *%rdi; add
// $8, %rsp; ret`.
TEST(Stalls, InsideGeneratedCodeWithoutUnwindTablesNameTheLine) {
  const ended child = run_child(
      [] {
        static constexpr unsigned char code[]{0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
        void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(page != MAP_FAILED);
        std::memcpy(page, code, sizeof code);
        check(::mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0);
        static const numbers data(1000, hpe::on_device(1));
        launch_long_kernel(data);
        reinterpret_cast<void (*)(void (*)())>(page)([] { check(touched(&data[7]) == 1); });
      },
      soon);
  EXPECT_TRUE(child.well()) << child;
  EXPECT_EQ(stalls_told(child), 1U) << child;
  EXPECT_TRUE(child.said("stalls.cpp:")) << child;
}

// The waits of half of the threads end at about the time of their reports. The process exits while the other threads
// wait.
TEST(Stalls, DoNotDisturbWaitsThatEndOrAnExitDuringReports) {
  for (const std::uint32_t after : {1'050'000U, 1'150'000U, 1'300'000U}) {
    const ended child = run_child(
        [after] {
          // The arrays are never freed, because freeing them would wait for the kernels.
          static const auto& data = *new numbers(1000, hpe::on_device(1));
          static const auto& others = *new numbers(1000, hpe::on_device(0));
          hpe::launch_on(0, test_kernel().increment, hpe::grid(1), {others.data(), others.size(), 1, long_time},
                         hpe::inout(others));
          hpe::launch_on(1, test_kernel().increment, hpe::grid(1), {data.data(), data.size(), 1, after},
                         hpe::inout(data));
          for (int i = 0; i < 4; ++i) std::thread([] { touched(&others[7]); }).detach();
          std::vector<std::thread> threads;
          for (int i = 0; i < 4; ++i) threads.emplace_back([] { check(touched(&data[7]) == 1); });
          for (std::thread& thread : threads) thread.join();
          std::exit(0);
        },
        soon);
    EXPECT_TRUE(child.well()) << child;
  }
}

sigjmp_buf out_of_the_wait;

TEST(Stalls, AWaitThatWasLeftIsNotReported) {
  const ended child = run_child(
      [] {
        // The array is never freed, because freeing it would wait for the kernel.
        const auto& data = *new numbers(1000, hpe::on_device(1));
        launch_long_kernel(data);
        ::signal(SIGALRM, [](int) { siglongjmp(out_of_the_wait, 1); });
        if (sigsetjmp(out_of_the_wait, 1) == 0) {
          ::ualarm(300'000, 0);
          check(data[7] == 1);
        }
        ::signal(SIGALRM, SIG_DFL);
        std::this_thread::sleep_for(2000ms);
      },
      soon);
  EXPECT_TRUE(child.well()) << child;
  EXPECT_EQ(stalls_told(child), 0U) << child;
}

// A thread that blocks SIGURG does not answer. While hpe waits for the answer, the program sets its own handler for
// SIGURG, which hpe must not replace.
TEST(Stalls, LeaveAHandlerThatTheProgramSetsMeanwhile) {
  const ended child = run_child(
      [] {
        const numbers data(1000, hpe::on_device(1));
        launch_long_kernel(data);
        std::thread waiting([&] {
          sigset_t urgent;
          sigemptyset(&urgent);
          sigaddset(&urgent, SIGURG);
          ::pthread_sigmask(SIG_BLOCK, &urgent, nullptr);
          check(data[7] == 1);
        });
        struct sigaction now {};
        while (::sigaction(SIGURG, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) std::this_thread::yield();
        const auto mine = [](int) {};
        ::signal(SIGURG, mine);
        waiting.join();
        check(::sigaction(SIGURG, nullptr, &now) == 0 && now.sa_handler == mine);
      },
      soon);
  EXPECT_TRUE(child.well()) << child;
  EXPECT_EQ(stalls_told(child), 1U) << child;
}

// The program itself handles SIGURG, so the report cannot name the place of the wait.
TEST(Stalls, AreReportedInAProgramThatHandlesTheSignal) {
  const ended child = run_child(
      [] {
        ::signal(SIGURG, [](int) { ::_exit(9); });
        const numbers data(1000, hpe::on_device(1));
        launch_long_kernel(data);
        hpe::synchronize();
      },
      soon);
  EXPECT_TRUE(child.well()) << child;
  EXPECT_TRUE(child.said("an unknown place")) << child;
}

}  // namespace
