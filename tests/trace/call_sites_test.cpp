#include "runtime/trace/call_sites.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace hpe::trace {
namespace {

using std::chrono::nanoseconds;

[[gnu::noinline]] void here(call_sites& sites, std::uint64_t bytes) { sites.add(1, bytes, nanoseconds(10)); }
[[gnu::noinline]] void there(call_sites& sites, std::uint64_t bytes) { sites.add(1, bytes, nanoseconds(20)); }

TEST(call_sites, count_by_stack_and_kind) {
  call_sites sites;
#pragma GCC unroll 1  // so that the loop contains a single call instruction
  for (int i = 0; i < 3; ++i) here(sites, 100);
  there(sites, 50);
  sites.add(2, 7, nanoseconds(1));
  const auto all = sites.all();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].calls, 3U);
  EXPECT_EQ(all[0].bytes, 300U);
  EXPECT_EQ(all[0].time, nanoseconds(30));
  EXPECT_EQ(all[0].kind, 1U);
  EXPECT_EQ(all[1].bytes, 50U);
  EXPECT_EQ(all[2].kind, 2U);
  for (const site& s : all) EXPECT_FALSE(s.stack.empty());
}

TEST(call_sites, are_those_that_asked_for_announced_work) {
  call_sites sites;
  const call_stack asked = [] { return call_stack::here(); }();
  ASSERT_GT(asked.count, 0);
  count_for(&asked);
  here(sites, 1);
  const call_stack nowhere{};
  count_for(&nowhere);
  here(sites, 2);
  count_for(nullptr);
  there(sites, 3);
  const auto all = sites.all();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].bytes, 1U);
  EXPECT_EQ(all[2].stack, std::vector(asked.frames.begin(), asked.frames.begin() + asked.count));
  for (int i = 0; i < 2; ++i) EXPECT_NE(all[static_cast<std::size_t>(i)].stack, all[2].stack);
}

TEST(call_stack, is_the_same_by_both_unwinders) {
  call_stack stacks[2];
  std::thread([&] {
    for (call_stack& s : stacks) {
      s = call_stack::here();  // the first call unwinds with libgcc, the second with libunwind
      call_stack::prepare();
    }
  }).join();
  // Both stacks come from the same call in the loop, so their outer frames are equal. One stack may also begin with a
  // frame of libhpe-stacks.so; therefore the two innermost frames of the shorter stack are not compared.
  ASSERT_GT(stacks[0].count, 2);
  const auto common = static_cast<std::ptrdiff_t>(std::min(stacks[0].count, stacks[1].count) - 2);
  ASSERT_GT(common, 2);
  EXPECT_TRUE(std::equal(stacks[0].frames.begin() + stacks[0].count - common,
                         stacks[0].frames.begin() + stacks[0].count,
                         stacks[1].frames.begin() + stacks[1].count - common));
}

TEST(call_stack, takes_no_memory_where_a_handler_may_be_the_first_to_ask) {
  call_stack::prepare();
  std::size_t before = 0;
  std::size_t after = 0;
  int count = 0;
  std::thread([&] {
    before = ::mallinfo2().uordblks;
    count = call_stack::here().count;
    after = ::mallinfo2().uordblks;
  }).join();
  EXPECT_EQ(before, after);
  EXPECT_GT(count, 1);
}

TEST(call_stack, leaves_exceptions_to_the_compilers_unwinder) {
  call_stack::prepare();
  for (const char* const name : {"_Unwind_RaiseException", "_Unwind_Backtrace", "backtrace"}) {
    Dl_info about{};
    void* const function = ::dlsym(RTLD_DEFAULT, name);
    ASSERT_NE(function, nullptr) << name;
    ASSERT_NE(::dladdr(function, &about), 0) << name;
    EXPECT_EQ(std::string(about.dli_fname).find("libunwind"), std::string::npos) << name;
  }
}

TEST(call_sites, of_nothing_are_none) { EXPECT_TRUE(call_sites().all().empty()); }

TEST(call_sites, lose_no_count_between_threads) {
  call_sites sites;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) i % 2 == 0 ? here(sites, 1) : there(sites, 2);
    });
  for (std::thread& t : threads) t.join();
  const auto all = sites.all();
  EXPECT_EQ(
      std::accumulate(all.begin(), all.end(), std::uint64_t{0}, [](auto sum, const site& s) { return sum + s.bytes; }),
      8U * 3000);
}

TEST(call_sites, those_without_room_are_counted_together) {
  call_sites sites;
  for (unsigned kind = 0; kind < 6000; ++kind) sites.add(kind, 1, nanoseconds(1));
  const auto all = sites.all();
  EXPECT_LE(all.size(), 4097U);
  std::uint64_t bytes = 0;
  bool together = false;
  for (const site& s : all) {
    bytes += s.bytes;
    together = together || (s.stack.empty() && s.calls > 1);
  }
  EXPECT_EQ(bytes, 6000U);
  EXPECT_TRUE(together);
}

}  // namespace
}  // namespace hpe::trace
