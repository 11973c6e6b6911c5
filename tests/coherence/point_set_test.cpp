#include "runtime/coherence/point_set.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace hpe::coherence {
namespace {

TEST(point_set, starts_empty_and_ignores_nothing_to_wait_for) {
  point_set s;
  EXPECT_TRUE(s.empty());
  s.add(timepoint{});
  EXPECT_TRUE(s.empty());
}

TEST(point_set, keeps_the_latest_point_of_each_timeline_in_any_order) {
  point_set s;
  s.add({7, 3});
  s.add({2, 9});
  s.add({7, 5});
  s.add({7, 4});
  ASSERT_EQ(s.points().size(), 2u);
  EXPECT_EQ(s.points()[0], (timepoint{2, 9}));
  EXPECT_EQ(s.points()[1], (timepoint{7, 5}));
}

TEST(point_set, equal_contents_are_equal_and_clear_empties) {
  point_set a;
  point_set b;
  a.add({1, 1});
  a.add({2, 2});
  b.add({2, 2});
  b.add({1, 1});
  EXPECT_EQ(a, b);
  b.add({1, 2});
  EXPECT_NE(a, b);
  a.clear();
  EXPECT_TRUE(a.empty());
}

TEST(point_set, leaves_out_all_points_of_a_timeline) {
  point_set set, other;
  for (const timepoint p : {timepoint{1, 5}, {2, 6}, {4, 7}}) set.add(p);
  for (const timepoint p : {timepoint{2, 1}, {3, 9}, {4, 9}}) other.add(p);
  set.remove_timelines(other);
  point_set rest;
  rest.add({1, 5});
  EXPECT_EQ(set, rest);
  set.remove_timelines(point_set(set));
  EXPECT_TRUE(set.empty());
}

TEST(point_set, a_union_is_the_maximum_by_timeline) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    point_set sets[2];
    std::map<std::uint32_t, std::uint64_t> expected;
    for (point_set& s : sets) {
      for (unsigned n = random() % 8; n > 0; --n) {
        const timepoint p{static_cast<std::uint32_t>(1 + random() % 5), random() % 20 + 1};
        s.add(p);
        expected[p.timeline] = std::max(expected[p.timeline], p.value);
      }
    }
    sets[0].add(sets[1]);
    ASSERT_EQ(sets[0].points().size(), expected.size());
    auto at = expected.begin();
    for (const timepoint p : sets[0].points()) {
      EXPECT_EQ(p, (timepoint{at->first, at->second}));
      ++at;
    }
  }
}

}  // namespace
}  // namespace hpe::coherence
