#include "runtime/base/interval_map.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace hpe {
namespace {

struct mapped_interval {
  int begin;
  int end;
  int value;
  friend bool operator==(const mapped_interval&, const mapped_interval&) = default;
};

std::vector<mapped_interval> intervals_of(const interval_map<int, int>& map) {
  std::vector<mapped_interval> result;
  for (const auto& [begin, i] : map) result.push_back({begin, i.end, i.value});
  return result;
}

TEST(interval_map, ends_are_outside) {
  interval_map<int, int> map;
  map.insert(10, 20, 1);
  EXPECT_EQ(map.find(9), map.end());
  EXPECT_EQ(map.find(10), map.begin());
  EXPECT_EQ(map.find(19), map.begin());
  EXPECT_EQ(map.find(20), map.end());
  EXPECT_EQ(map.from(9), map.begin());
  EXPECT_EQ(map.from(19), map.begin());
  EXPECT_EQ(map.from(20), map.end());
  EXPECT_FALSE(map.overlaps(0, 10));
  EXPECT_TRUE(map.overlaps(0, 11));
  EXPECT_TRUE(map.overlaps(19, 30));
  EXPECT_FALSE(map.overlaps(20, 30));
  EXPECT_TRUE(map.overlaps(12, 13));
}

TEST(interval_map, equal_neighbours_become_one_where_asked_for) {
  interval_map<int, int> map;
  map.insert_merged(10, 20, 1);
  map.insert_merged(30, 40, 1);
  map.insert_merged(40, 50, 2);
  EXPECT_EQ(intervals_of(map), (std::vector<mapped_interval>{{10, 20, 1}, {30, 40, 1}, {40, 50, 2}}));
  EXPECT_EQ(map.insert_merged(20, 30, 1), map.begin());
  EXPECT_EQ(intervals_of(map), (std::vector<mapped_interval>{{10, 40, 1}, {40, 50, 2}}));
  map.insert(5, 10, 1);
  EXPECT_EQ(map.size(), 3U);
}

TEST(interval_map, splitting_keeps_values_and_returns_the_later_part) {
  interval_map<int, int> map;
  map.insert(10, 20, 1);
  map.insert(30, 40, 2);
  EXPECT_EQ(map.split(10)->first, 10);
  EXPECT_EQ(map.split(25)->first, 30);
  EXPECT_EQ(map.split(40), map.end());
  EXPECT_EQ(map.size(), 2U);
  EXPECT_EQ(map.split(15)->first, 15);
  EXPECT_EQ(intervals_of(map), (std::vector<mapped_interval>{{10, 15, 1}, {15, 20, 1}, {30, 40, 2}}));
}

TEST(interval_map, visits_the_parts_in_a_range) {
  interval_map<int, int> map;
  map.insert(10, 20, 1);
  map.insert(30, 40, 2);
  std::vector<mapped_interval> seen;
  map.for_each(15, 31, [&](int begin, int end, int value) { seen.push_back({begin, end, value}); });
  EXPECT_EQ(seen, (std::vector<mapped_interval>{{15, 20, 1}, {30, 31, 2}}));
}

TEST(interval_map, does_as_an_array_of_values_does) {
  constexpr int size = 64;
  std::mt19937 random(7);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  interval_map<int, int> map;
  std::array<int, size> values{};  // the value at each position; 0: no value
  for (int step = 0; step < 20000; ++step) {
    const int begin = below(size - 1);
    const int end = begin + 1 + below(size - 1 - begin);
    map.erase(begin, end);
    const int value = below(3);
    if (value != 0) map.insert_merged(begin, end, value);
    std::fill(values.begin() + begin, values.begin() + end, value);
    for (int at = 0; at < size; ++at) {
      const auto found = map.find(at);
      ASSERT_EQ(found == map.end() ? 0 : found->second.value, values[static_cast<std::size_t>(at)]) << step;
    }
    int last_end = -1;
    for (const mapped_interval& p : intervals_of(map)) {
      ASSERT_LT(p.begin, p.end);
      ASSERT_GE(p.begin, last_end);
      last_end = p.end;
    }
  }
}

}  // namespace
}  // namespace hpe
