#include "runtime/work/host_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "hpe/error.hpp"

namespace hpe::work {
namespace {

constexpr std::uint64_t limit = 800, kept_free = limit / 8;

// A budget with the thread that makes room. make_room() is what the thread does at each call; it stops with the object.
class with_thread {
 public:
  explicit with_thread(std::function<host_budget::room_made(std::uint64_t)> make_room)
      : thread_([this, make = std::move(make_room)] { budget.keep_room(make); }) {}
  ~with_thread() {
    budget.stop();
    thread_.join();
  }
  with_thread(const with_thread&) = delete;
  with_thread& operator=(const with_thread&) = delete;

  host_budget budget{limit};

 private:
  std::thread thread_;
};

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_OUT_OF_MEMORY);
    return e.what();
  }
  return "no refusal";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Begins to reserve bytes, and returns when the thread waits for them.
std::future<void> wait_for(host_budget& of, std::uint64_t bytes) {
  auto result = std::async(std::launch::async, [&of, bytes] { of.reserve(bytes, false); });
  while (of.has_free(0)) std::this_thread::yield();
  return result;
}

TEST(host_budget, is_reserved_up_to_the_last_byte) {
  host_budget budget(limit);
  EXPECT_TRUE(budget.has_free(limit));
  EXPECT_FALSE(budget.has_free(limit + 1));
  EXPECT_FALSE(budget.try_reserve(limit + 1));
  EXPECT_TRUE(budget.try_reserve(300));
  EXPECT_FALSE(budget.try_reserve(501));
  EXPECT_TRUE(budget.try_reserve(500));
  EXPECT_FALSE(budget.has_free(1));
  EXPECT_TRUE(budget.has_free(0));
  budget.release(0);
  EXPECT_FALSE(budget.try_reserve(1));
  budget.release(300);
  EXPECT_TRUE(budget.has_free(300));
  EXPECT_FALSE(budget.has_free(301));
  budget.reserve(300, false);
  budget.release(800);
  budget.exceed(limit + 5);
  EXPECT_FALSE(budget.has_free(0));
  EXPECT_FALSE(budget.try_reserve(0));
  budget.release(6);
  EXPECT_TRUE(budget.try_reserve(1));
  EXPECT_FALSE(budget.try_reserve(1));
}

TEST(host_budget, keeps_a_part_free_ahead_of_its_use) {
  host_budget budget(limit);
  EXPECT_TRUE(budget.try_reserve(limit - kept_free));
  EXPECT_TRUE(budget.has_enough());
  EXPECT_TRUE(budget.try_reserve(1));
  EXPECT_FALSE(budget.has_enough());
  budget.stop();
  EXPECT_TRUE(budget.has_enough()) << "nobody makes room any more";
  constexpr std::uint64_t mebi = std::uint64_t{1} << 20;
  host_budget large(16384 * mebi);
  EXPECT_TRUE(large.try_reserve((16384 - 256) * mebi));
  EXPECT_TRUE(large.has_enough()) << "not more than 256 MiB are kept free";
  EXPECT_TRUE(large.try_reserve(1));
  EXPECT_FALSE(large.has_enough());
}

TEST(host_budget, of_host_memory_is_three_quarters) {
  host_budget budget(limit + 3);
  EXPECT_TRUE(
      contains(refusal([&] { budget.take(601); }),
               "601 bytes of host memory were asked for, and 0 are allocated; their sum may be at most 600, three "
               "quarters of 803"));
  budget.take(400);
  EXPECT_TRUE(contains(refusal([&] { budget.take(201); }), "201 bytes of host memory were asked for, and 400"));
  budget.take(200);
  budget.take(0);
  EXPECT_TRUE(budget.has_free(203));
  EXPECT_FALSE(budget.has_free(204));
  budget.give_back(0);
  budget.give_back(500);
  EXPECT_FALSE(budget.has_free(704));
  EXPECT_TRUE(budget.has_free(703));
  EXPECT_TRUE(contains(refusal([&] { budget.take(501); }), "and 100 are allocated"));
  budget.take(500);
}

TEST(host_budget, room_is_made_for_the_bytes_that_are_missing) {
  std::vector<std::uint64_t> wanted;
  with_thread* its = nullptr;
  std::atomic<bool> ready{false};
  with_thread all([&](std::uint64_t bytes) -> host_budget::room_made {
    while (!ready) std::this_thread::yield();
    wanted.push_back(bytes);
    its->budget.release(bytes);
    return {bytes, 0, ""};
  });
  its = &all;
  EXPECT_TRUE(all.budget.try_reserve(limit - kept_free));
  EXPECT_TRUE(all.budget.try_reserve(20));
  ready = true;
  while (!all.budget.has_enough()) std::this_thread::yield();
  EXPECT_EQ(wanted, std::vector<std::uint64_t>{20});
  all.budget.reserve(limit - 30, false);  // 700 bytes were taken
  while (!all.budget.has_enough()) std::this_thread::yield();
  EXPECT_EQ(wanted, (std::vector<std::uint64_t>{20, limit - 30}));
}

TEST(host_budget, is_given_in_the_order_of_the_requests) {
  host_budget budget(limit);
  ASSERT_TRUE(budget.try_reserve(limit - 20));
  auto first = wait_for(budget, 100);
  EXPECT_FALSE(budget.try_reserve(1)) << "20 bytes are free, but another thread has asked first";
  EXPECT_FALSE(budget.has_free(0));
  auto second = std::async(std::launch::async, [&] { budget.reserve(10, false); });
  budget.release(79);
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  EXPECT_EQ(first.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
  budget.release(1);
  first.get();
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  budget.release(10);
  second.get();
  EXPECT_TRUE(budget.has_free(0));
  EXPECT_FALSE(budget.has_free(1));
}

TEST(host_budget, without_data_that_can_make_room_is_refused_or_exceeded) {
  std::atomic<std::uint64_t> stuck{limit - 300};
  std::atomic<const char*> why{"a device is lost"};
  with_thread all([&](std::uint64_t) -> host_budget::room_made { return {0, stuck, why.load()}; });
  all.budget.take(300);
  all.budget.exceed(limit - 300);
  EXPECT_TRUE(
      contains(refusal([&] { all.budget.reserve(50, false); }),
               "50 more bytes of host memory are needed, 800 of 800 (HPE_HOST_MEMORY) are taken, and no data can "
               "make room: a device is lost"));
  why = "";
  EXPECT_TRUE(contains(refusal([&] { all.budget.reserve(50, false); }),
                       "no data can make room: all of it is host memory (hpeMallocHost)"));
  EXPECT_FALSE(all.budget.has_free(1)) << "the refused bytes are not taken";
  EXPECT_TRUE(all.budget.has_free(0));
  testing::internal::CaptureStderr();
  all.budget.reserve(50, true);
  stuck += 50;
  all.budget.reserve(50, true);
  const std::string told = testing::internal::GetCapturedStderr();
  const auto at = told.find("from now on, memory that CPU code touches exceeds the limit");
  EXPECT_NE(at, std::string::npos) << told;
  EXPECT_EQ(told.find("from now on", at + 1), std::string::npos) << "told once\n" << told;
  all.budget.release(99);
  EXPECT_FALSE(all.budget.has_free(0));
  all.budget.release(1);
  EXPECT_TRUE(all.budget.has_free(0));
}

TEST(host_budget, is_searched_again_while_data_may_become_free) {
  std::atomic<int> calls{0};
  with_thread* its = nullptr;
  std::atomic<bool> ready{false};
  with_thread all([&](std::uint64_t) -> host_budget::room_made {
    while (!ready) std::this_thread::yield();
    if (++calls < 4) return {0, limit - 1, "one byte is in use"};
    its->budget.release(200);
    return {200, 0, ""};
  });
  its = &all;
  all.budget.exceed(limit);
  ready = true;
  all.budget.reserve(40, false);
  EXPECT_GE(calls, 4);
}

TEST(host_budget, a_change_during_the_search_is_no_refusal) {
  std::atomic<int> calls{0};
  with_thread* its = nullptr;
  std::atomic<bool> ready{false};
  with_thread all([&](std::uint64_t) -> host_budget::room_made {
    while (!ready) std::this_thread::yield();
    if (++calls == 1) {
      its->budget.exceed(10);  // another thread takes memory meanwhile
      return {0, limit + 10, "all is stuck"};
    }
    its->budget.release(100);
    return {100, 0, ""};
  });
  its = &all;
  all.budget.exceed(limit);
  auto waiting = std::async(std::launch::async, [&] { all.budget.reserve(40, false); });
  while (all.budget.has_free(0)) std::this_thread::yield();
  ready = true;
  EXPECT_NO_THROW(waiting.get());
}

}  // namespace
}  // namespace hpe::work
