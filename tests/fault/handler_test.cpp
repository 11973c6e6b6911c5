#include "runtime/fault/handler.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "runtime/core/runtime.h"

namespace hpe::fault {
namespace {

constexpr std::size_t page = 4096;

/// Returns the wait status of a child that runs the body and then exits with 0.
template <class Body>
int status_of_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    body();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

/// Runs the body in a child made by vfork, which shares this process's memory until it exits, and returns the child's
/// wait status.
template <class Body>
[[gnu::noinline]] int status_of_vfork(Body body) {
  const pid_t child = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): vfork is the subject of the test
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

volatile std::byte* closed_page() {
  return static_cast<std::byte*>(::mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

unsigned opened = 0;
bool last_was_write = false;

fault_verdict open_page(std::byte* address, bool write) noexcept {
  ++opened;
  last_was_write = write;
  const auto begin = reinterpret_cast<std::uintptr_t>(address) / page * page;
  return ::mprotect(reinterpret_cast<void*>(begin), page, PROT_READ | (write ? PROT_WRITE : 0)) == 0
             ? fault_verdict::retry
             : fault_verdict::not_ours;
}

TEST(handler, other_faults_are_served_in_the_process_that_installed_their_function) {
  const int status = status_of_child([] {
    handle_other_faults_with(open_page);
    volatile std::byte* const p = closed_page();
    const std::byte first = *p;
    EXPECT_EQ(first, std::byte{0});
    EXPECT_FALSE(last_was_write);
    *p = std::byte{1};
    EXPECT_EQ(opened, 2u);
    EXPECT_TRUE(last_was_write);
    // In a child of this process, the handler does not call open_page, because such a function may wait for threads,
    // which a child lacks.
    const int of_grandchild = status_of_child([] { *closed_page() = std::byte{1}; });
    EXPECT_TRUE(WIFSIGNALED(of_grandchild) && WTERMSIG(of_grandchild) == SIGSEGV) << "wait status " << of_grandchild;
    if (::testing::Test::HasFailure()) ::_exit(1);
  });
  EXPECT_EQ(status, 0);
}

// A child made by vfork shares the memory, and the threads of the parent handle its faults.
TEST(handler, faults_of_children_made_by_vfork_are_served) {
  options chosen;
  chosen.devices = "soft:1";
  core::runtime runtime(chosen);
  auto* const coherent = static_cast<volatile std::byte*>(runtime.memory().allocate(page, 0));
  const int status = status_of_child([] {
    handle_other_faults_with(open_page);
    volatile std::byte* const p = closed_page();
    const int of_grandchild = status_of_vfork([p] { *p = std::byte{1}; });
    ::_exit(of_grandchild == 0 && *p == std::byte{1} ? 0 : 1);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(status_of_vfork([coherent] { *coherent = std::byte{2}; }), 0);
  EXPECT_EQ(*const_cast<std::byte*>(coherent), std::byte{2});
  runtime.memory().free(const_cast<std::byte*>(coherent));
}

TEST(handler, a_child_with_other_faults_of_its_own_does_not_wait_for_the_lanes_of_its_parent) {
  options chosen;
  chosen.devices = "soft:1";
  core::runtime runtime(chosen);
  auto* const p = static_cast<std::byte*>(runtime.memory().allocate(page, 0));
  const int status = status_of_child([p] {
    handle_other_faults_with(open_page);
    volatile std::byte* const mine = closed_page();
    *mine = std::byte{1};
    if (opened == 0) ::_exit(1);
    *p = std::byte{1};
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << "wait status " << status;
  *p = std::byte{1};
  runtime.memory().free(p);
}

}  // namespace
}  // namespace hpe::fault
