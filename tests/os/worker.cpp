#include "runtime/os/worker.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "tests/no_more_threads.h"

namespace {

using hpe::os::worker;

TEST(Worker, RunsTasksInTheirOrder) {
  worker one("hpe-test");
  std::vector<int> order;
  std::promise<void> done;
  for (int n = 0; n < 3; ++n) EXPECT_TRUE(one.post([&, n] { order.push_back(n); }));
  EXPECT_TRUE(one.post([&] { done.set_value(); }));
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(Worker, FinishWaitsForTheRunningTaskAndRemovesTheOthers) {
  worker one("hpe-test");
  std::promise<void> begun, may_end;
  bool has_ended = false, has_run = false;
  EXPECT_TRUE(one.post([&] {
    begun.set_value();
    may_end.get_future().wait();
    has_ended = true;
  }));
  EXPECT_TRUE(one.post([&] { has_run = true; }));
  begun.get_future().wait();
  std::thread ending([&] { one.finish(); });
  while (one.post([] {})) std::this_thread::yield();
  may_end.set_value();
  ending.join();
  EXPECT_TRUE(has_ended);
  EXPECT_FALSE(has_run);
  one.finish();
}

TEST(Worker, TellsIfItsThreadCannotStart) {
  worker one("hpe-test");
  bool has_run = false;
  {
    const hpe::testing::no_more_threads limit;
    EXPECT_FALSE(one.post([&] { has_run = true; }));
  }
  EXPECT_FALSE(has_run);
}

}  // namespace
