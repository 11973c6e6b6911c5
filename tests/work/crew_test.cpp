#include "runtime/work/crew.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace hpe::work {
namespace {

constexpr unsigned helpers = 3;

TEST(crew, does_each_task_once) {
  crew c;
  c.start("test-crew", helpers);
  constexpr std::uint64_t count = 1000;
  std::vector<std::atomic<int>> times(count);
  c.for_each(count, [&](std::uint64_t n) { ++times[n]; });
  for (const auto& t : times) EXPECT_EQ(t.load(), 1);
  c.for_each(0, [](std::uint64_t) { ADD_FAILURE(); });
}

TEST(crew, without_helpers_the_caller_does_all) {
  crew c;
  const auto me = std::this_thread::get_id();
  int done = 0;
  c.for_each(5, [&](std::uint64_t) { done += std::this_thread::get_id() == me ? 1 : 0; });
  EXPECT_EQ(done, 5);
}

// Each task waits until all tasks have begun, so there must be as many threads as tasks.
TEST(crew, does_several_tasks_at_a_time) {
  crew c;
  c.start("test-crew", helpers);
  std::atomic<unsigned> begun{0};
  c.for_each(helpers + 1, [&](std::uint64_t) {
    ++begun;
    while (begun.load() != helpers + 1) std::this_thread::yield();
  });
  EXPECT_EQ(begun.load(), helpers + 1);
}

TEST(crew, serves_several_callers) {
  crew c;
  c.start("test-crew", helpers);
  std::atomic<std::uint64_t> sum{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) c.for_each(20, [&](std::uint64_t n) { sum += n; });
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(sum.load(), 4 * 50 * 190);
}

TEST(crew, throws_the_first_failure_and_begins_no_more) {
  crew c;
  c.start("test-crew", helpers);
  std::atomic<std::uint64_t> begun{0};
  EXPECT_THROW(c.for_each(1000,
                          [&](std::uint64_t n) {
                            ++begun;
                            if (n == 2) throw std::runtime_error("a failure");
                            std::this_thread::sleep_for(std::chrono::milliseconds(1));
                          }),
               std::runtime_error);
  EXPECT_LT(begun.load(), 1000);
  std::atomic<int> after{0};
  c.for_each(3, [&](std::uint64_t) { ++after; });
  EXPECT_EQ(after.load(), 3);
}

}  // namespace
}  // namespace hpe::work
