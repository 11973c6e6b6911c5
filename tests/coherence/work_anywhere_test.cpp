#include "runtime/coherence/work_anywhere.h"

#include <gtest/gtest.h>

#include "runtime/coherence/region_table.h"

namespace hpe::coherence {
namespace {

constexpr std::uint64_t bytes = std::uint64_t{4} << 20;
constexpr std::uint64_t here = 1, elsewhere = 2;  // bits of devices 0 and 1

class WorkAnywhere : public testing::Test {
 protected:
  // Returns a region on device 0 that device work has written.
  region& make(std::uint64_t size = bytes) HPE_NO_THREAD_SAFETY_ANALYSIS {
    region& r = table_.take();
    region_layout layout;
    layout.bytes = layout.extent = size;
    layout.block_size = 1 << 20;
    layout.homes = {0};
    layout.piece_size = bytes;
    r.begin(layout, 0, 0);
    r.resident.add({{0, size}, 0}, 0);
    r.transition(r.all_blocks(), block_event::device_write);
    return r;
  }
  // Queues work whose timepoint is `point`. Returns what it waits for; nullopt if it was not queued.
  std::optional<point_set> use(std::uint64_t homes, std::uint64_t epoch, timepoint point) {
    point_set after;
    if (!all_.use(homes, epoch, after, [&] { return point; })) return std::nullopt;
    return after;
  }
  static point_set users(const region& r) HPE_NO_THREAD_SAFETY_ANALYSIS {
    point_set result;
    r.order.before_write({5, 6}, result);
    return result;
  }
  static bool has(const std::optional<point_set>& in, timepoint point) { return in && in->covers(point); }

  region_table table_;
  work_anywhere& all_ = table_.anywhere();
};

TEST_F(WorkAnywhere, UsersOfRegionsWaitForItAndItWaitsForThem) {
  all_.start();
  region& r = make();
  r.order.record_write({0, 1}, {1, 5});
  r.order.record_read({2, 3}, {2, 7});
  r.order.record_concurrent({2, 3}, {3, 9});
  const auto after = use(here, all_.epoch(), {4, 11});
  EXPECT_TRUE(has(after, {1, 5}) && has(after, {2, 7}));
  EXPECT_FALSE(has(after, {3, 9})) << "the program orders concurrent work";
  EXPECT_TRUE(has(users(r), {4, 11}));
  point_set readers, beside;
  r.order.before_read({5, 6}, readers);
  r.order.before_concurrent({5, 6}, beside);
  EXPECT_TRUE(has(readers, {4, 11}));
  EXPECT_FALSE(has(beside, {4, 11}));
}

TEST_F(WorkAnywhere, OnlyHomesInItsReachCount) {
  all_.start();
  region& r = make();
  r.order.record_write({0, 1}, {1, 5});
  EXPECT_FALSE(has(use(elsewhere, all_.epoch(), {4, 11}), {1, 5}));
  EXPECT_FALSE(has(users(r), {4, 11}));
}

// More work may join the last command of a stream, and then accesses the new region.
TEST_F(WorkAnywhere, LaterRegionsWaitForTheLastWork) {
  all_.start();
  ASSERT_TRUE(use(here, all_.epoch(), {4, 11}));
  region& r = make();
  EXPECT_TRUE(has(users(r), {4, 11}));
  ASSERT_TRUE(use(here, all_.epoch(), {4, 12}));
  EXPECT_TRUE(has(users(r), {4, 12}));
}

TEST_F(WorkAnywhere, IsNotQueuedIfARegionMayNotBeSettled) {
  all_.start();
  region& r = make();
  const auto is_told = [&](const auto& change) HPE_NO_THREAD_SAFETY_ANALYSIS {
    const std::uint64_t before = all_.epoch();
    change();
    return !use(here, before, {4, 11});
  };
  EXPECT_FALSE(is_told([] {}));
  EXPECT_TRUE(is_told([&] { r.resident.set_leaving(0, true); }));
  EXPECT_FALSE(r.is_settled(false));
  r.resident.set_leaving(0, false);
  EXPECT_TRUE(r.is_settled(true));
  EXPECT_TRUE(is_told([&] { r.resident.set_zero_copy(0, true); }));
  EXPECT_TRUE(r.is_settled(false) && !r.is_settled(true));
  EXPECT_TRUE(is_told([&] { r.begin_fetch({0, 1}, block_event::prefetch, 1); }));
  EXPECT_FALSE(r.is_settled(false));
  r.transition(r.all_blocks(), block_event::device_write);
  EXPECT_TRUE(r.is_settled(false));
  EXPECT_TRUE(is_told([&] { r.transition({1, 2}, block_event::brought_to_host); }));
  EXPECT_FALSE(r.is_settled(false));
  r.transition(r.all_blocks(), block_event::device_write);
  EXPECT_TRUE(is_told([&] { make(); }));
  EXPECT_TRUE(is_told([&] { r.resident.remove(0); }));
  EXPECT_FALSE(r.is_settled(false));
}

TEST_F(WorkAnywhere, MayChangeTheContentsOfEachRegion) {
  all_.start();
  region& r = make();
  const auto contents = [&]() HPE_NO_THREAD_SAFETY_ANALYSIS { return r.contents_version(); };
  const std::uint64_t before = contents();
  ASSERT_TRUE(use(here, all_.epoch(), {4, 11}));
  EXPECT_NE(contents(), before);
}

}  // namespace
}  // namespace hpe::coherence
