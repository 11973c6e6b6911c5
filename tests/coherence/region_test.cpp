#include "runtime/coherence/region.h"

#include <gtest/gtest.h>

#include "runtime/base/granule.h"

namespace hpe::coherence {
namespace {

constexpr std::uint64_t kib = 1024;

bool anything(std::uint64_t /*block*/) { return true; }

std::byte* const base = reinterpret_cast<std::byte*>(0x200000000000);

region_layout one_home(std::uint64_t bytes, std::uint64_t block_size) {
  return {.kind = region_kind::device,
          .base = base,
          .bytes = bytes,
          .extent = round_up(bytes, 4 * kib),
          .block_size = block_size,
          .homes = {3}};
}

class region_test : public testing::Test {
 protected:
  void begin(region_layout what) { it.begin(std::move(what), 8 << 20, 8 << 20); }
  region it{1};
};

TEST_F(region_test, begins_fresh) {
  begin(one_home(1000 * kib, 64 * kib));
  EXPECT_TRUE(it.alive);
  EXPECT_FALSE(it.degraded);
  ASSERT_EQ(it.blocks().count(), 16u);  // the last block is shorter
  for (std::uint64_t b = 0; b < 16; ++b) EXPECT_EQ(it.state(b), block_state::fresh);
  EXPECT_EQ(it.blocks().off_device(), 16u);
  EXPECT_FALSE(it.blocks().shadow_used());
  EXPECT_EQ(it.whole(), (byte_range{0, 1000 * kib}));
  it.end();
  EXPECT_FALSE(it.alive);
}

// The program may free an allocation while a call of hpeEnqueue uses it.
TEST_F(region_test, a_use_that_ends_after_its_region_is_not_a_use_of_the_next_region) {
  begin(one_home(1000 * kib, 64 * kib));
  ++it.acquired;
  it.end();
  begin(one_home(1000 * kib, 64 * kib));
  --it.acquired;
  EXPECT_EQ(it.acquired, 0u);
}

TEST_F(region_test, blocks_of_a_range_are_those_that_it_meets) {
  begin(one_home(1000 * kib, 64 * kib));
  EXPECT_EQ(it.blocks_of({0, 1}), (block_run{0, 1}));
  EXPECT_EQ(it.blocks_of({0, 64 * kib}), (block_run{0, 1}));
  EXPECT_EQ(it.blocks_of({0, 64 * kib + 1}), (block_run{0, 2}));
  EXPECT_EQ(it.blocks_of({64 * kib - 1, 64 * kib + 1}), (block_run{0, 2}));
  EXPECT_EQ(it.blocks_of(it.whole()), (block_run{0, 16}));
  EXPECT_TRUE(it.blocks_of({70 * kib, 70 * kib}).empty());
}

TEST_F(region_test, bytes_of_blocks_end_with_the_region) {
  begin(one_home(1000 * kib, 64 * kib));
  EXPECT_EQ(it.bytes_of({1, 3}), (byte_range{64 * kib, 192 * kib}));
  EXPECT_EQ(it.bytes_of({15, 16}), (byte_range{960 * kib, 1000 * kib}));
  EXPECT_EQ(it.bytes_of({0, 16}), it.whole());
}

TEST_F(region_test, knows_its_addresses_up_to_the_mapped_end) {
  begin(one_home(5000, 64 * kib));
  EXPECT_TRUE(it.contains(base));
  EXPECT_TRUE(it.contains(base + 8191));
  EXPECT_FALSE(it.contains(base + 8192));
  EXPECT_FALSE(it.contains(base - 1));
  EXPECT_EQ(it.offset_of(base + 77), 77u);
}

TEST_F(region_test, one_home_is_the_home_of_everything) {
  begin(one_home(1000 * kib, 64 * kib));
  EXPECT_EQ(it.home_of(0), 3);
  EXPECT_EQ(it.home_of(999 * kib), 3);
  EXPECT_EQ(it.end_of_home(0, 1000 * kib), 1000 * kib);
  EXPECT_EQ(it.end_of_home(100, 200), 200u);
  EXPECT_EQ(it.home_set(), 1u << 3);
}

TEST_F(region_test, a_striped_region_has_a_home_for_each_granule) {
  begin({.kind = region_kind::striped,
         .base = base,
         .bytes = 5 * granule_size - 100,
         .extent = 5 * granule_size,
         .block_size = granule_size,
         .homes = {0, 0, 1, 1, 0}});
  const std::uint64_t end = it.layout.extent;
  const std::uint16_t homes[] = {0, 0, 1, 1, 0};
  for (std::uint64_t g = 0; g < 5; ++g) {
    EXPECT_EQ(it.home_of(g * granule_size), homes[g]);
    EXPECT_EQ(it.home_of((g + 1) * granule_size - 1), homes[g]);
  }
  EXPECT_EQ(it.end_of_home(0, end), 2 * granule_size);
  EXPECT_EQ(it.end_of_home(granule_size + 5, end), 2 * granule_size);
  EXPECT_EQ(it.end_of_home(granule_size + 5, granule_size + 9), granule_size + 9);
  EXPECT_EQ(it.end_of_home(2 * granule_size, end), 4 * granule_size);
  EXPECT_EQ(it.end_of_home(4 * granule_size, end), end);

  // Each byte is in exactly one stretch, which has the byte's home.
  std::uint64_t stretches = 0;
  for (std::uint64_t at = 0; at < end; ++stretches) {
    const std::uint64_t next = it.end_of_home(at, end);
    ASSERT_GT(next, at);
    EXPECT_EQ(it.home_of(next - 1), it.home_of(at));
    at = next;
  }
  EXPECT_EQ(stretches, 3u);

  EXPECT_EQ(it.home_set(), 3u);
  it.set_homes({2});
  EXPECT_EQ(it.home_set(), 1u << 2);
  EXPECT_EQ(it.home_of(3 * granule_size), 2);
}

TEST_F(region_test, a_copy_ahead_of_an_eviction_uses_the_shadow) {
  begin(one_home(1000 * kib, 64 * kib));
  it.transition(it.all_blocks(), block_event::device_write);
  EXPECT_FALSE(it.blocks().shadow_used());
  it.use_shadow();
  EXPECT_TRUE(it.blocks().shadow_used());
  begin(one_home(1000 * kib, 64 * kib));
  EXPECT_FALSE(it.blocks().shadow_used());
}

TEST_F(region_test, counts_the_blocks_that_are_off_the_device) {
  begin(one_home(1000 * kib, 64 * kib));
  const auto off_device = [&] { return it.blocks().off_device(); };
  const block_run fifth{4, 5};
  it.transition(it.all_blocks(), block_event::device_write);
  EXPECT_EQ(off_device(), 0u);
  EXPECT_FALSE(it.blocks().shadow_used());
  it.transition(fifth, block_event::device_write);
  EXPECT_EQ(off_device(), 0u);
  it.begin_fetch(fifth, block_event::prefetch, 7);
  EXPECT_TRUE(it.blocks().shadow_used());
  EXPECT_TRUE(it.blocks().fetched_by(4, 7));
  EXPECT_FALSE(it.blocks().fetched_by(4, 6));
  it.transition(fifth, block_event::fetched);
  EXPECT_FALSE(it.blocks().fetched_by(4, 7));
  it.transition(fifth, block_event::host_write);
  EXPECT_EQ(off_device(), 1u);
  EXPECT_EQ(it.blocks().same_from(0, 16), (block_run{0, 4}));
  EXPECT_EQ(it.blocks().same_from(4, 16), fifth);
  it.transition(fifth, block_event::device_write);
  EXPECT_EQ(off_device(), 0u);
}

TEST_F(region_test, knows_the_blocks_that_lie_wholly_in_a_range) {
  begin(one_home(1000 * kib, 64 * kib));
  EXPECT_EQ(it.blocks_within({0, 64 * kib}), (block_run{0, 1}));
  EXPECT_EQ(it.blocks_within({1, 129 * kib}), (block_run{1, 2}));
  EXPECT_EQ(it.blocks_within({1, 64 * kib}), (block_run{1, 1}));
  EXPECT_EQ(it.blocks_within({960 * kib, 1000 * kib}), (block_run{15, 16})) << "the last block is cut at the extent";
  EXPECT_EQ(it.blocks_within({960 * kib, 999 * kib}), (block_run{15, 15}));
}

TEST_F(region_test, cuts_parts_between_blocks_and_homes) {
  begin({.kind = region_kind::striped,
         .base = base,
         .bytes = 3 * granule_size,
         .extent = 3 * granule_size,
         .block_size = 64 * kib,
         .homes = {0, 1, 1}});
  const std::uint64_t end = it.layout.extent;
  EXPECT_EQ(it.end_of_part(0, end, end), granule_size) << "of one home";
  EXPECT_EQ(it.end_of_part(granule_size, end, ~std::uint64_t{0}), end);
  EXPECT_EQ(it.end_of_part(10, end, 100 * kib), 64 * kib) << "between blocks";
  EXPECT_EQ(it.end_of_part(0, end, 128 * kib), 128 * kib);
  EXPECT_EQ(it.end_of_part(10, end, 20 * kib), 20 * kib + 10) << "inside a block that has more bytes than the part";
  EXPECT_EQ(it.end_of_part(0, 100 * kib, 1 << 20), 100 * kib) << "at the limit";
  std::vector<std::pair<unsigned, byte_range>> parts;
  it.for_each_home({granule_size - 5, granule_size + 7}, [&](unsigned home, byte_range part) {
    parts.push_back({home, part});
  });
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0], (std::pair<unsigned, byte_range>{0, {granule_size - 5, granule_size}}));
  EXPECT_EQ(parts[1], (std::pair<unsigned, byte_range>{1, {granule_size, granule_size + 7}}));
}

TEST_F(region_test, collapses_to_one_block) {
  begin(one_home(1000 * kib, 64 * kib));
  it.transition(it.all_blocks(), block_event::host_write);
  it.collapse();
  EXPECT_TRUE(it.degraded);
  ASSERT_EQ(it.blocks().count(), 1u);
  EXPECT_EQ(it.state(0), block_state::host);
  EXPECT_EQ(it.blocks().off_device(), 1u);
  EXPECT_EQ(it.block_of(it.layout.extent - 1), 0u);
  EXPECT_EQ(it.bytes_of({0, 1}), it.whole());
  EXPECT_EQ(it.blocks_of({900 * kib, 1000 * kib}), (block_run{0, 1}));
  EXPECT_TRUE(it.writer.touched(0, false, anything).upload.empty());

  it.transition({0, 1}, block_event::device_write);
  EXPECT_EQ(it.blocks().off_device(), 0u);
}

TEST_F(region_test, is_refined_to_smaller_blocks_with_the_same_states) {
  region_layout what = one_home(1000 * kib, 256 * kib);
  what.least_block_size = 64 * kib;
  begin(what);
  it.transition({0, 4}, block_event::host_write);
  it.transition({1, 3}, block_event::device_write);
  it.begin_fetch({2, 3}, block_event::host_read, 7);
  it.set_rolled({0, 1}, true);
  EXPECT_EQ(it.refine(), 4u);
  ASSERT_EQ(it.blocks().count(), 16u);  // the last block is shorter
  for (std::uint64_t b = 0; b < 16; ++b) {
    const block_state expected[] = {block_state::host, block_state::device, block_state::fetching, block_state::host};
    EXPECT_EQ(it.state(b), expected[b / 4]) << b;
    EXPECT_EQ(it.blocks().fetched_by(b, 7), b / 4 == 2) << b;
    EXPECT_EQ(it.blocks().rolled(b), b / 4 == 0) << b;
  }
  EXPECT_EQ(it.blocks().off_device(), 12u);
  EXPECT_EQ(it.bytes_of({15, 16}), (byte_range{960 * kib, 1000 * kib}));
  EXPECT_EQ(it.refine(), 1u) << "it is refined already";
  it.transition(it.all_blocks(), block_event::device_write);
  EXPECT_EQ(it.blocks().off_device(), 0u);

  begin(one_home(1000 * kib, 64 * kib));
  EXPECT_EQ(it.refine(), 1u) << "it has no smaller blocks";
}

TEST_F(region_test, a_reused_object_keeps_nothing_of_its_former_region) {
  begin(one_home(1000 * kib, 64 * kib));
  it.advise(HPE_ADVISE_LAZY);
  it.order.record_write(it.whole(), {1, 1});
  it.set_rolled({0, 1}, true);
  it.transition(it.all_blocks(), block_event::host_write);
  it.collapse();
  it.end();

  begin(one_home(128 * kib, 64 * kib));
  EXPECT_FALSE(it.degraded);
  EXPECT_EQ(it.advice, HPE_ADVISE_DEFAULT);
  ASSERT_EQ(it.blocks().count(), 2u);
  EXPECT_EQ(it.state(0), block_state::fresh);
  EXPECT_FALSE(it.blocks().rolled(0));
  EXPECT_FALSE(it.blocks().shadow_used());
  point_set after;
  it.order.before_write(it.whole(), after);
  EXPECT_TRUE(after.empty());
}

/// Writes each block in turn; returns the number of blocks that were uploaded behind the writer.
std::uint64_t uploaded_behind_a_walk(region& r) {
  std::uint64_t uploaded = 0;
  for (std::uint64_t b = 0; b < r.blocks().count(); ++b)
    for (const block_run& run : r.writer.touched(b, false, anything).upload) uploaded += run.end - run.begin;
  return uploaded;
}

TEST_F(region_test, advice_decides_about_uploading_behind_and_fetching_ahead) {
  it.begin(one_home(64 * 64 * kib, 64 * kib), 16 * 64 * kib, 8 * 64 * kib);
  EXPECT_GT(uploaded_behind_a_walk(it), 0u);
  it.advise(HPE_ADVISE_LAZY);
  EXPECT_EQ(uploaded_behind_a_walk(it), 0u);

  it.advise(HPE_ADVISE_READ_MOSTLY);  // prefetch may run ahead up to the end of the region
  block_run furthest;
  for (std::uint64_t b = 0; b < 64; ++b) {
    const block_run ahead = it.reader.touched(b);
    if (ahead.end - ahead.begin > furthest.end - furthest.begin) furthest = ahead;
  }
  EXPECT_GT(furthest.end - furthest.begin, 16u);

  it.begin(one_home(64 * 64 * kib, 64 * kib), 0, 0);
  EXPECT_EQ(uploaded_behind_a_walk(it), 0u);
  for (std::uint64_t b = 0; b < 64; ++b) EXPECT_TRUE(it.reader.touched(b).empty());
}

// A program that advises rolling uploads writes in any order.
TEST_F(region_test, advice_of_rolling_uploads_behind_writers_without_a_pattern) {
  it.begin(one_home(64 * 64 * kib, 64 * kib), 16 * 64 * kib, 8 * 64 * kib);
  const auto uploaded_behind_a_backward_walk = [&] {
    std::uint64_t uploaded = 0;
    for (std::uint64_t b = it.blocks().count(); b-- > 0;)
      for (const block_run& run : it.writer.touched(b, false, anything).upload) uploaded += run.end - run.begin;
    return uploaded;
  };
  EXPECT_EQ(uploaded_behind_a_backward_walk(), 0U);
  it.advise(HPE_ADVISE_ROLLING);
  EXPECT_GT(uploaded_behind_a_backward_walk(), 0U);
  it.advise(HPE_ADVISE_LAZY);
  EXPECT_EQ(uploaded_behind_a_backward_walk(), 0U);
}

TEST_F(region_test, the_version_of_the_contents_changes_with_each_write_of_the_host_only) {
  begin(one_home(1000 * kib, 64 * kib));
  const auto changes = [&](block_event event) {
    const std::uint64_t before = it.contents_version();
    it.transition({0, 1}, event);
    return it.contents_version() != before;
  };
  EXPECT_FALSE(changes(block_event::host_read));
  EXPECT_TRUE(changes(block_event::host_write));
  EXPECT_FALSE(changes(block_event::flush));
  EXPECT_FALSE(changes(block_event::device_read));
  EXPECT_FALSE(changes(block_event::device_write));
  EXPECT_FALSE(changes(block_event::prefetch));
  EXPECT_FALSE(changes(block_event::fetched));
  EXPECT_TRUE(changes(block_event::host_overwrite));
  EXPECT_FALSE(changes(block_event::device_overwrite));
  EXPECT_FALSE(changes(block_event::prefetch));
  EXPECT_TRUE(changes(block_event::fetched_for_write));
  EXPECT_FALSE(changes(block_event::device_write));
  EXPECT_TRUE(changes(block_event::abandoned));
  const std::uint64_t last = it.contents_version();
  it.end();
  begin(one_home(1000 * kib, 64 * kib));
  EXPECT_NE(it.contents_version(), last) << "regions share no version";
}

TEST_F(region_test, host_memory_is_never_uploaded) {
  region_layout what = one_home(64 * 64 * kib, 64 * kib);
  what.kind = region_kind::host;
  it.begin(what, 16 * 64 * kib, 8 * 64 * kib);
  EXPECT_TRUE(it.single_copy());
  EXPECT_EQ(uploaded_behind_a_walk(it), 0u);
}

TEST(choose_block_size, is_a_256th_between_its_bounds_unless_wished) {
  EXPECT_EQ(choose_block_size(1, 0), 64 * kib);
  EXPECT_EQ(choose_block_size(16 << 20, 0), 64 * kib);
  EXPECT_EQ(choose_block_size((16 << 20) + 256, 0), 128 * kib);
  EXPECT_EQ(choose_block_size(100 << 20, 0), 512 * kib);
  EXPECT_EQ(choose_block_size(std::uint64_t{1} << 40, 0), 2048 * kib);
  EXPECT_EQ(choose_block_size(1 << 30, 4 * kib), 4 * kib);
  EXPECT_EQ(choose_least_block_size(1, 0), 64 * kib);
  EXPECT_EQ(choose_least_block_size(1 << 30, 0), 64 * kib);
  EXPECT_EQ(choose_least_block_size((1 << 30) + 16384, 0), 128 * kib);
  EXPECT_EQ(choose_least_block_size(std::uint64_t{1} << 40, 0), 2048 * kib);
  EXPECT_EQ(choose_least_block_size(1 << 30, 4 * kib), 4 * kib);
}

}  // namespace
}  // namespace hpe::coherence
