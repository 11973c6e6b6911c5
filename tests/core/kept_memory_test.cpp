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
  /// Mapped and written memory, like that of a freed allocation.
  kept_memory::mapping used_mapping(std::size_t granules, int value) {
    const kept_memory::mapping result{&segment, segment.allocate(granules + 1), granules * granule_size, granules + 1};
    soft.space.map_view(result.base, result.extent, os::access::read_write);
    std::memset(result.base, value, result.extent);
    return result;
  }
  [[nodiscard]] std::size_t shadow_bytes() const {
    struct stat s {};
    ::fstat(soft.space.shadow_file(), &s);
    return static_cast<std::size_t>(s.st_blocks) * 512;
  }

  transfer_test::machine soft{"soft:2"};
  memory::segment_allocator segment{soft.at(0), 64};
};

TEST_F(kept_memory_test, gives_back_mappings_of_the_very_size) {
  kept_memory kept(soft.space, *soft.set, 64 * mib);
  const auto first = used_mapping(2, 5);
  const auto second = used_mapping(2, 6);
  kept.keep(first);
  kept.keep(second);
  memory::segment_allocator another(soft.at(1), 64);
  EXPECT_FALSE(kept.take(segment, first.extent - 4096));
  EXPECT_FALSE(kept.take(another, first.extent));
  EXPECT_EQ(kept.take(segment, first.extent), first.base) << "the one that was kept longest";
  EXPECT_EQ(*soft.space.alias(first.base), std::byte{5}) << "its pages are there";
  EXPECT_EQ(kept.take(segment, first.extent), second.base);
  EXPECT_FALSE(kept.take(segment, first.extent));
}

TEST_F(kept_memory_test, what_is_too_much_goes_back_to_the_system_oldest_first) {
  kept_memory kept(soft.space, *soft.set, 6 * granule_size);
  const std::size_t free_at_first = segment.free_granules();
  const auto first = used_mapping(4, 1);
  const auto second = used_mapping(3, 2);
  const std::size_t both = shadow_bytes();
  kept.keep(first);
  EXPECT_EQ(shadow_bytes(), both);
  kept.keep(second);
  EXPECT_EQ(shadow_bytes(), both - first.extent);
  EXPECT_EQ(*soft.space.alias(first.base), std::byte{0});
  EXPECT_FALSE(kept.take(segment, first.extent));
  EXPECT_EQ(segment.free_granules(), free_at_first - second.granules);
  kept.clear();
  EXPECT_EQ(segment.free_granules(), free_at_first);
  EXPECT_FALSE(kept.take(segment, second.extent));
}

TEST_F(kept_memory_test, gives_each_mapping_to_one_of_several_threads) {
  kept_memory kept(soft.space, *soft.set, 64 * mib);
  constexpr std::size_t count = 250;
  constexpr std::uint64_t page = 4096;
  constexpr int threads = 3;
  std::vector<kept_memory::mapping> all;
  std::byte* const pages = used_mapping(1, 1).base;
  for (std::size_t i = 0; i < count; ++i) all.push_back({&segment, pages + i * page, page, 0});
  for (int round = 0; round < 200; ++round) {
    for (const auto& m : all) kept.keep(m);
    std::barrier together(threads);
    std::array<std::vector<std::byte*>, threads> taken;
    std::vector<std::thread> takers;
    for (auto& mine : taken)
      takers.emplace_back([&] {
        together.arrive_and_wait();
        while (const auto base = kept.take(segment, page)) mine.push_back(*base);
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
  const auto only = used_mapping(1, 3);
  const std::size_t before = shadow_bytes();
  kept.keep(only);
  EXPECT_EQ(shadow_bytes(), before - only.extent);
  EXPECT_FALSE(kept.take(segment, only.extent));
}

}  // namespace
}  // namespace hpe::core
