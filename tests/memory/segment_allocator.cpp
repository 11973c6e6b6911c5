#include "runtime/memory/segment_allocator.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>
#include <vector>

#include "runtime/base/granule.h"
#include "tests/memory/expect_error.h"

namespace {

using namespace hpe;
using memory::segment_allocator;

std::byte* const begin = reinterpret_cast<std::byte*>(std::uintptr_t{0x200000000000});
std::byte* granule(std::size_t index) { return begin + index * granule_size; }

TEST(SegmentAllocator, FillsTheSegmentToItsLastGranule) {
  segment_allocator segment(begin, 8);
  EXPECT_EQ(segment.allocate(3), granule(0));
  EXPECT_EQ(segment.allocate(5), granule(3));
  EXPECT_EQ(segment.allocate(1), nullptr);
  EXPECT_EQ(segment.free_granules(), 0u);
}

TEST(SegmentAllocator, ReusesFreedRangesLast) {
  segment_allocator segment(begin, 8);
  std::byte* first = segment.allocate(2);
  segment.free(first, 2);
  EXPECT_EQ(segment.allocate(2), granule(2)) << "the first two granules are free, but are not reused yet";
  EXPECT_EQ(segment.allocate(4), granule(4));
  EXPECT_EQ(segment.allocate(2), first);
}

TEST(SegmentAllocator, TakesARangeAtAnAddressIfAllOfItIsFree) {
  segment_allocator segment(begin, 8);
  EXPECT_EQ(segment.allocate(3), granule(0));
  EXPECT_FALSE(segment.allocate_at(granule(2), 2));
  EXPECT_FALSE(segment.allocate_at(granule(6), 3)) << "beyond the end";
  EXPECT_TRUE(segment.allocate_at(granule(4), 2));
  EXPECT_FALSE(segment.allocate_at(granule(5), 1));
  EXPECT_EQ(segment.free_granules(), 3u);
  segment.free(granule(4), 2);
  EXPECT_TRUE(segment.allocate_at(granule(3), 5));
}

TEST(SegmentAllocator, MergesNeighbours) {
  segment_allocator segment(begin, 9);
  for (int i = 0; i < 3; ++i) ASSERT_NE(segment.allocate(3), nullptr);
  segment.free(granule(0), 3);
  segment.free(granule(6), 3);
  EXPECT_EQ(segment.allocate(4), nullptr);
  segment.free(granule(3), 3);
  EXPECT_EQ(segment.allocate(9), granule(0));
}

TEST(SegmentAllocator, PartsOfARangeCanBeFreed) {
  segment_allocator segment(begin, 4);
  ASSERT_EQ(segment.allocate(4), granule(0));
  segment.free(granule(1), 2);
  EXPECT_EQ(segment.allocate(2), granule(1));
}

TEST(SegmentAllocator, RefusesToFreeARangeTwice) {
  segment_allocator segment(begin, 4);
  ASSERT_EQ(segment.allocate(2), granule(0));
  segment.free(granule(0), 2);
  expect_error(HPE_ERROR_INTERNAL, "defect", [&] { segment.free(granule(0), 2); });
  expect_error(HPE_ERROR_INTERNAL, "defect", [&] { segment.free(granule(1), 1); });
  expect_error(HPE_ERROR_INTERNAL, "defect", [&] { segment.free(granule(4), 1); });
}

// The oracle has one bit for each granule: whether the granule is allocated.
TEST(SegmentAllocator, AgreesWithAnOracle) {
  constexpr std::size_t total = 300;
  segment_allocator segment(begin, total);
  std::vector<bool> taken(total);
  std::vector<std::pair<std::size_t, std::size_t>> live;
  std::mt19937 random(7);
  int refused = 0;
  for (int step = 0; step < 20000; ++step) {
    if (live.empty() || random() % 100 < 55) {
      const std::size_t count = 1 + random() % (random() % 8 == 0 ? 60 : 6);
      std::byte* p = segment.allocate(count);
      if (p == nullptr) {
        ++refused;
        std::size_t longest = 0;
        for (std::size_t i = 0, run = 0; i < total; ++i) longest = std::max(longest, run = taken[i] ? 0 : run + 1);
        ASSERT_LT(longest, count) << "there was room";
        continue;
      }
      const auto first = static_cast<std::size_t>(p - begin) / granule_size;
      ASSERT_LE(first + count, total);
      for (std::size_t i = first; i < first + count; ++i) {
        ASSERT_FALSE(taken[i]);
        taken[i] = true;
      }
      live.emplace_back(first, count);
    } else {
      const std::size_t which = random() % live.size();
      const auto [first, count] = live[which];
      live[which] = live.back();
      live.pop_back();
      segment.free(granule(first), count);
      for (std::size_t i = first; i < first + count; ++i) taken[i] = false;
    }
    ASSERT_EQ(segment.free_granules(), static_cast<std::size_t>(std::count(taken.begin(), taken.end(), false)));
  }
  EXPECT_GT(refused, 100) << "the test must often fill the segment";
}

TEST(SegmentAllocator, ThreadsGetDifferentRanges) {
  segment_allocator segment(begin, 4000);
  std::vector<std::vector<std::byte*>> got(4);
  std::vector<std::thread> threads;
  for (auto& mine : got)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        mine.push_back(segment.allocate(1));
        if (i % 3 == 0) {
          segment.free(mine.back(), 1);
          mine.pop_back();
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::set<std::byte*> all;
  std::size_t count = 0;
  for (const auto& mine : got) {
    all.insert(mine.begin(), mine.end());
    count += mine.size();
  }
  EXPECT_EQ(all.size(), count);
  EXPECT_EQ(all.count(nullptr), 0u);
  EXPECT_EQ(segment.free_granules(), 4000 - count);
}

// A request of exactly the free granules, before and behind the place where the search starts, and of one more.
TEST(SegmentAllocator, GivesExactlyWhatIsFree) {
  segment_allocator none(begin, 0);
  EXPECT_EQ(none.free_granules(), 0U);
  EXPECT_EQ(none.allocate(1), nullptr);
  segment_allocator one(begin, 1);
  EXPECT_EQ(one.free_granules(), 1U);
  EXPECT_EQ(one.allocate(2), nullptr);
  EXPECT_EQ(one.allocate(1), begin);
  EXPECT_EQ(one.allocate(1), nullptr);
  one.free(begin, 1);
  EXPECT_EQ(one.allocate(1), begin);
  for (std::size_t first = 1; first < 8; ++first) {
    segment_allocator segment(begin, 8);
    EXPECT_EQ(segment.allocate(first), begin);
    EXPECT_EQ(segment.allocate(9 - first), nullptr);
    EXPECT_EQ(segment.allocate(8 - first), begin + first * hpe::granule_size) << "all granules behind the first";
    EXPECT_EQ(segment.free_granules(), 0U);
    segment.free(begin, first);
    EXPECT_EQ(segment.allocate(first + 1), nullptr);
    EXPECT_EQ(segment.allocate(first), begin) << "all granules before the last range";
    segment.free(begin + first * hpe::granule_size, 8 - first);
    EXPECT_FALSE(segment.allocate_at(begin + first * hpe::granule_size, 9 - first));
    EXPECT_TRUE(segment.allocate_at(begin + first * hpe::granule_size, 8 - first));
    EXPECT_FALSE(segment.allocate_at(begin, 1));
  }
}

// An extent that is exactly as long as the request, behind the place where the search starts.
TEST(SegmentAllocator, TakesTheNextExactRangeBeforeAnEarlierOne) {
  segment_allocator segment(begin, 8);
  ASSERT_EQ(segment.allocate(4), begin);
  ASSERT_TRUE(segment.allocate_at(begin + 7 * hpe::granule_size, 1));
  segment.free(begin, 3);
  EXPECT_EQ(segment.allocate(3), begin + 4 * hpe::granule_size);
  EXPECT_EQ(segment.allocate(3), begin);
}

// Of two free ranges that are long enough, the one behind the last allocated range is taken.
TEST(SegmentAllocator, SearchesFromTheEndOfTheLastRange) {
  segment_allocator segment(begin, 10);
  for (int n = 0; n < 10; ++n) ASSERT_NE(segment.allocate(1), nullptr);
  segment.free(begin + 4 * hpe::granule_size, 1);
  segment.free(begin + 7 * hpe::granule_size, 2);
  segment.free(begin + 1 * hpe::granule_size, 2);
  EXPECT_EQ(segment.allocate(1), begin + 1 * hpe::granule_size) << "the last range ended at the segment's end";
  EXPECT_EQ(segment.allocate(2), begin + 7 * hpe::granule_size);
  EXPECT_EQ(segment.allocate(1), begin + 2 * hpe::granule_size);
  EXPECT_EQ(segment.allocate(1), begin + 4 * hpe::granule_size);
  EXPECT_EQ(segment.allocate(1), nullptr);
}

}  // namespace
