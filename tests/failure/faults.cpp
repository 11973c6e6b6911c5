// The program's own faults in a process with libhpe.so: the program gets them as it would without hpe.

#include <sys/mman.h>

#include <cstring>
#include <numeric>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/failure/child.h"

namespace {

using namespace failure_test;
using hpe::inout;
using numbers = hpe::array<std::uint32_t>;

constexpr std::size_t mebi = std::size_t{1} << 20;

// Returns a page of the program that may not be accessed.
volatile char* closed_page() {
  return static_cast<char*>(::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

// Uses hpe memory in a way that raises page faults for reads and for writes.
void use_hpe() {
  const numbers a(mebi);
  std::iota(a.begin(), a.end(), 0U);
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), a.size(), 1, 0}, inout(a));
  for (std::size_t i = 0; i < a.size(); ++i) check(a[i] == i + 1);
}

const void* volatile seen_by_handler = nullptr;
volatile int handled = 0;

// A signal handler that opens the page, so that the access is repeated and succeeds.
void open_page(int signal, siginfo_t* info, void* /*context*/) {
  check(signal == SIGSEGV);
  seen_by_handler = info->si_addr;
  handled = handled + 1;
  ::mprotect(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(info->si_addr) & ~std::uintptr_t{4095}), 4096,
             PROT_READ | PROT_WRITE);
}

void install_open_page() {
  struct sigaction action {};
  action.sa_sigaction = open_page;
  action.sa_flags = SA_SIGINFO;
  check(::sigaction(SIGSEGV, &action, nullptr) == 0);
}

void check_own_fault_is_handled(int so_far) {
  volatile char* page = closed_page();
  page[123] = 5;
  check(page[123] == 5 && handled == so_far + 1 && seen_by_handler == const_cast<char*>(page + 123));
}

TEST(ForeignFault, HandlerInstalledBeforeHpeStarts) {
  const ended child = run_child([] {
    install_open_page();
    use_hpe();
    check(handled == 0, "the program's handler got a fault on hpe memory");
    check_own_fault_is_handled(0);
    use_hpe();
    check_own_fault_is_handled(1);
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(ForeignFault, HandlerInstalledAfterHpeStarted) {
  const ended child = run_child([] {
    use_hpe();
    install_open_page();
    use_hpe();
    check(handled == 0, "the program's handler got a fault on hpe memory");
    check_own_fault_is_handled(0);
    use_hpe();
  });
  EXPECT_TRUE(child.well()) << child;
}

// hpe memory that a signal handler uses.
std::uint32_t* touched_by_handler = nullptr;

void touch_and_open(int signal, siginfo_t* info, void* context) {
  ++*touched_by_handler;
  open_page(signal, info, context);
}

TEST(ForeignFault, HandlerMayUseHpeMemory) {
  const ended child = run_child([] {
    const numbers a(mebi);
    touched_by_handler = &a[1000];
    struct sigaction action {};
    action.sa_sigaction = touch_and_open;
    action.sa_flags = SA_SIGINFO;
    check(::sigaction(SIGSEGV, &action, nullptr) == 0);
    for (int round = 0; round < 5; ++round) {
      hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), a.size(), 1, 0}, inout(a));
      check_own_fault_is_handled(round);
    }
    check(a[1000] == 10 && a[0] == 5);
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(ForeignFault, WithoutAHandlerTheProgramEndsAsWithoutHpe) {
  const ended without = run_child([] { *closed_page() = 1; });
  const ended with = run_child([] {
    use_hpe();
    *closed_page() = 1;
  });
  EXPECT_TRUE(without.by_signal(SIGSEGV)) << without;
  EXPECT_EQ(with.status, without.status) << with;
  EXPECT_EQ(with.text, "");
}

TEST(StrayAccess, ToFreedMemoryIsExplained) {
  const ended child = run_child([] {
    std::uint32_t* p = nullptr;
    {
      const numbers a(mebi);
      p = a.data();
    }
    p[3] = 1;
  });
  EXPECT_TRUE(child.by_signal(SIGSEGV)) << child;
  EXPECT_TRUE(child.said("invalid write")) << child;
  EXPECT_TRUE(child.said("12 bytes inside an allocation of 4194304 bytes")) << child;
  EXPECT_TRUE(child.said("that was freed")) << child;
}

TEST(StrayAccess, PastTheEndIsExplained) {
  // Accesses beyond the end of an allocation: in its last granule, and directly after an allocation that fills its
  // granules.
  for (const std::size_t bytes : {std::size_t{5'000'000}, 4 * mebi}) {
    const ended child = run_child([&] {
      const hpe::array<char> a(bytes);
      const hpe::array<char> next(bytes);
      check(const_cast<volatile char*>(a.data())[bytes + 4096] == 0);
    });
    EXPECT_TRUE(child.by_signal(SIGSEGV)) << child;
    EXPECT_TRUE(child.said("invalid read")) << child;
    EXPECT_TRUE(child.said("4096 bytes past the end of the allocation of " + std::to_string(bytes) + " bytes"))
        << child;
  }
}

TEST(StrayAccess, ToAnAddressThatWasNeverGivenOutIsExplained) {
  const ended child = run_child([] {
    const numbers a(mebi);
    const_cast<volatile std::uint32_t*>(a.data())[std::size_t{1} << 36] = 1;
  });
  EXPECT_TRUE(child.by_signal(SIGSEGV)) << child;
  EXPECT_TRUE(child.said("but neither in an allocation nor in one that was freed recently")) << child;
}

TEST(StrayAccess, IsSeenByTheProgramsHandlerWithItsAddress) {
  const ended child = run_child([] {
    const numbers a(mebi);
    volatile std::uint32_t* stray = a.data() + (std::size_t{1} << 36);
    const caught_fault fault = catch_fault([&] { *stray = 1; });
    check(fault.happened && fault.address == const_cast<std::uint32_t*>(stray));
    use_hpe();
  });
  EXPECT_TRUE(child.well()) << child;
}

// In the first round, the valid copy is on the device, so the pages are closed; in the second round, the host has
// written the memory.
TEST(ForeignFault, AJumpIntoMemoryOfHpe) {
  for (const bool open : {false, true}) {
    const ended child = run_child([open] {
      const numbers a(mebi);
      hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), a.size(), 1, 0}, inout(a));
      if (open) a[0] = 1;
      const auto jump = [&] { reinterpret_cast<void (*)()>(a.data())(); };
      const caught_fault f = catch_fault(jump);
      check(f.happened && f.address == a.data());
      jump();
    });
    EXPECT_TRUE(child.by_signal(SIGSEGV)) << child;
  }
}

}  // namespace
