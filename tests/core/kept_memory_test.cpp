#include "runtime/core/memory/kept_memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <barrier>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "runtime/base/granule.h"
#include "tests/transfer/machine.h"

namespace hpe::core {
namespace {

using transfer_test::mib;

class kept_memory_test : public testing::Test {
 protected:
  /// Returns mapped and written memory, like that of a freed allocation.
  kept_memory::space used_space(std::size_t granules, int value) {
    const kept_memory::space result{&segment, segment.allocate(granules), granules};
    const std::size_t bytes = granules * granule_size;
    soft.space.map_view(result.base, bytes, os::page_protection::read_write);
    std::memset(result.base, value, bytes);
    return result;
  }
  [[nodiscard]] std::byte byte_at(const std::byte* p) const { return *soft.space.alias(p); }
  [[nodiscard]] std::size_t shadow_bytes() const {
    struct stat s {};
    ::fstat(soft.space.shadow_file(), &s);
    return static_cast<std::size_t>(s.st_blocks) * 512;
  }

  transfer_test::machine soft{"soft:2"};
  memory::segment_allocator segment{soft.at(0), 64};
};

constexpr auto old = kept_memory::contents::old;
constexpr auto zero = kept_memory::contents::zero;

TEST_F(kept_memory_test, gives_the_smallest_space_that_is_large_enough) {
  kept_memory kept(soft.space, *soft.set, 64 * mib);
  const auto large = used_space(5, 5);
  (void)segment.allocate(1);  // keeps the two spaces apart
  const auto small = used_space(3, 6);
  kept.keep(large, old);
  kept.keep(small, old);
  memory::segment_allocator another(soft.at(1), 64);
  EXPECT_FALSE(kept.take(another, 1));
  const auto first = kept.take(segment, 2);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->base, small.base);
  EXPECT_EQ(first->pages, old);
  EXPECT_EQ(byte_at(small.base), std::byte{6}) << "the memory keeps its pages";
  EXPECT_EQ(kept.take(segment, 1)->base, small.base + 2 * granule_size) << "the rest";
  EXPECT_EQ(kept.take(segment, 4)->base, large.base);
  EXPECT_EQ(kept.take(segment, 1)->base, large.base + 4 * granule_size);
  EXPECT_FALSE(kept.take(segment, 1));
}

TEST_F(kept_memory_test, neighbours_with_the_same_contents_become_one) {
  kept_memory kept(soft.space, *soft.set, 64 * mib);
  const auto first = used_space(2, 1);
  const auto second = used_space(2, 2);
  const auto third = used_space(2, 0);
  kept.keep(second, old);
  kept.keep(first, old);
  kept.keep(third, zero);
  EXPECT_EQ(kept.take(segment, 4)->base, first.base);
  const auto clean = kept.take(segment, 2);
  ASSERT_TRUE(clean);
  EXPECT_EQ(clean->base, third.base);
  EXPECT_EQ(clean->pages, zero);
}

TEST_F(kept_memory_test, a_larger_allocation_goes_on_behind_it_where_that_is_free) {
  kept_memory kept(soft.space, *soft.set, 64 * mib);
  const auto before = used_space(3, 1);
  const auto other = used_space(1, 2);  // lies directly after `before`
  const auto last = used_space(2, 3);
  const std::size_t free = segment.free_granules();
  kept.keep(before, old);
  EXPECT_FALSE(kept.take(segment, 4));
  kept.keep(last, zero);
  EXPECT_FALSE(kept.take(segment, 4)) << "an allocation follows the largest kept space";
  EXPECT_TRUE(kept.take(segment, 3));
  const auto longer = kept.take(segment, 5);
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->base, last.base);
  EXPECT_EQ(segment.free_granules(), free - 3);
  EXPECT_EQ(byte_at(last.base + 4 * granule_size), std::byte{0});
  (void)other;
}

TEST_F(kept_memory_test, memory_beyond_the_limit_goes_back_to_the_system) {
  kept_memory kept(soft.space, *soft.set, 6 * granule_size);
  const std::size_t free_at_first = segment.free_granules();
  const auto first = used_space(4, 1);
  (void)segment.allocate(1);
  const auto second = used_space(3, 2);
  const std::size_t both = shadow_bytes();
  kept.keep(first, old);
  EXPECT_EQ(shadow_bytes(), both);
  kept.keep(second, old);
  EXPECT_EQ(shadow_bytes(), both - granule_size) << "no more than necessary";
  EXPECT_EQ(byte_at(first.base + granule_size), std::byte{1});
  EXPECT_EQ(segment.free_granules(), free_at_first - 7);
  kept.clear();
  EXPECT_EQ(segment.free_granules(), free_at_first - 1);
  EXPECT_EQ(shadow_bytes(), both - 7 * granule_size);
  EXPECT_FALSE(kept.take(segment, 1));
}

TEST_F(kept_memory_test, gives_each_space_to_one_of_several_threads) {
  kept_memory kept(soft.space, *soft.set, 128 * mib);
  constexpr std::size_t count = 32;
  constexpr int threads = 3;
  const auto all = used_space(count, 1);
  for (int round = 0; round < 200; ++round) {
    for (std::size_t i = 0; i < count; ++i) kept.keep({&segment, all.base + i * granule_size, 1}, old);
    std::barrier together(threads);
    std::array<std::vector<std::byte*>, threads> taken;
    std::vector<std::thread> takers;
    for (auto& mine : taken)
      takers.emplace_back([&] {
        together.arrive_and_wait();
        while (const auto found = kept.take(segment, 1)) mine.push_back(found->base);
      });
    for (std::thread& t : takers) t.join();
    std::set<std::byte*> different;
    std::size_t sum = 0;
    for (const auto& mine : taken) {
      different.insert(mine.begin(), mine.end());
      sum += mine.size();
    }
    ASSERT_EQ(sum, count);
    ASSERT_EQ(different.size(), count);
  }
}

TEST_F(kept_memory_test, nothing_is_kept_that_is_larger_than_the_limit) {
  kept_memory kept(soft.space, *soft.set, 0);
  const auto only = used_space(1, 3);
  const std::size_t before = shadow_bytes();
  kept.keep(only, old);
  EXPECT_EQ(shadow_bytes(), before - granule_size);
  EXPECT_FALSE(kept.take(segment, 1));
}

}  // namespace
}  // namespace hpe::core
