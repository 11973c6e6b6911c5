#include "runtime/coherence/region_table.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "hpe/error.hpp"

namespace hpe::coherence {
namespace {

std::byte* address(std::uint64_t n) { return reinterpret_cast<std::byte*>(n); }

void begin(region& r, std::uint64_t base, std::uint64_t bytes) {
  r.begin({.kind = region_kind::device,
           .base = address(base),
           .bytes = bytes,
           .extent = 4096,
           .block_size = 65536,
           .homes = {0}},
          0, 0);
}

TEST(region_table, numbers_from_one_and_finds_by_number) {
  region_table table;
  EXPECT_EQ(table.limit(), 1u);
  std::set<region*> seen;
  for (std::uint32_t expected = 1; expected <= 1000; ++expected) {  // enough regions for several chunks
    region& r = table.take();
    EXPECT_EQ(r.id, expected);
    EXPECT_FALSE(r.alive);
    EXPECT_EQ(&table.at(expected), &r);
    EXPECT_EQ(table.limit(), expected + 1);
    EXPECT_TRUE(seen.insert(&r).second);
  }
}

TEST(region_table, a_number_rests_before_it_is_used_again) {
  region_table table;
  region& first = table.take();
  begin(first, 0x10000, 4096);
  first.end();
  table.give_back(first);

  // The object of a freed region stays at its address, marked as not alive, for threads that still have its number.
  std::uint32_t others = 0;
  while (true) {
    region& r = table.take();
    if (&r == &first) break;
    ++others;
    ASSERT_LT(others, 1000u) << "never used again";
    begin(r, 0x100000, 4096);
    r.end();
    table.give_back(r);
    EXPECT_EQ(&table.at(first.id), &first);
  }
  EXPECT_GE(others, 64u);
  EXPECT_LT(table.limit(), 200u) << "regions reuse the numbers of freed regions";
}

TEST(region_table, numbers_of_a_lane_have_its_remainder) {
  constexpr unsigned lanes = 3;
  region_table table(lanes);
  std::set<std::uint32_t> seen;
  for (int n = 0; n < 600; ++n) {
    const unsigned lane = static_cast<unsigned>(n * n) % lanes;  // 0 1 1 0 1 1 ...: lane 2 never occurs
    region& r = table.take(lane + lanes * 7);
    EXPECT_EQ(r.id % lanes, lane);
    EXPECT_EQ(&table.at(r.id), &r);
    EXPECT_NE(r.id, 0u);
    EXPECT_LT(r.id, table.limit());
    EXPECT_TRUE(seen.insert(r.id).second);
  }
  for (const std::uint32_t number : seen) {
    begin(table.at(number), 0x10000 * number, 4096);
    table.at(number).end();
    table.give_back(table.at(number));
  }
  const std::uint32_t limit = table.limit();
  for (int n = 0; n < 300; ++n) EXPECT_EQ(table.take(1).id % lanes, 1u);
  EXPECT_EQ(table.limit(), limit) << "regions reuse the numbers of freed regions";
}

TEST(region_table, remembers_freed_regions_by_address) {
  region_table table;
  EXPECT_FALSE(table.freed_at(address(0x10000)));
  table.note_freed({address(0x10000), 3000});
  EXPECT_FALSE(table.freed_at(address(0xffff)));
  ASSERT_TRUE(table.freed_at(address(0x10000)));
  EXPECT_TRUE(table.freed_at(address(0x10000 + 2999)));
  EXPECT_FALSE(table.freed_at(address(0x10000 + 3000)));

  // If a later allocation at the same address is freed, the table returns that allocation.
  table.note_freed({address(0x10000), 500});
  const auto freed = table.freed_at(address(0x10000 + 100));
  ASSERT_TRUE(freed);
  EXPECT_EQ(freed->bytes, 500u);
  EXPECT_EQ(table.freed_at(address(0x10000 + 1000))->bytes, 3000u);
}

TEST(region_table, forgets_regions_that_were_freed_long_ago) {
  region_table table;
  for (std::uint64_t n = 0; n < 300; ++n) table.note_freed({address((n + 1) << 16), 4096});
  EXPECT_FALSE(table.freed_at(address(std::uint64_t{1} << 16)));
  EXPECT_TRUE(table.freed_at(address(std::uint64_t{300} << 16)));
  EXPECT_TRUE(table.freed_at(address(std::uint64_t{100} << 16)));
}

TEST(region_table, can_be_used_by_several_threads) {
  region_table table;
  std::mutex mutex;
  std::set<std::uint32_t> taken;
  const auto work = [&] {
    for (int n = 0; n < 500; ++n) {
      region& r = table.take();
      {
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(taken.insert(r.id).second) << "given out twice";
      }
      EXPECT_EQ(&table.at(r.id), &r);
      {
        const std::lock_guard lock(r.mutex);
        begin(r, 0x10000, 4096);
        r.end();
      }
      {
        const std::lock_guard lock(mutex);
        taken.erase(r.id);
      }
      table.give_back(r);
    }
  };
  std::thread threads[] = {std::thread(work), std::thread(work), std::thread(work)};
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace hpe::coherence
