#include "runtime/coherence/resident_pieces.h"

#include <gtest/gtest.h>

namespace hpe::coherence {
namespace {

constexpr std::uint64_t granule = std::uint64_t{2} << 20;

byte_range granules(std::uint64_t begin, std::uint64_t end) { return {begin * granule, end * granule}; }

/// Returns pieces for a region of ten granules: the granules [2, 4) and [4, 7) have memory.
resident_pieces two_pieces() {
  resident_pieces r;
  r.reset(10 * granule);
  r.add({granules(2, 4), 0}, 1);
  r.add({granules(4, 7), 1}, 1);
  return r;
}

TEST(resident_pieces, cover_ranges_across_pieces_only_without_holes) {
  const resident_pieces r = two_pieces();
  EXPECT_TRUE(r.covers(granules(2, 7)));
  EXPECT_TRUE(r.covers({3 * granule + 5, 4 * granule + 1}));
  EXPECT_FALSE(r.covers(granules(1, 3)));
  EXPECT_FALSE(r.covers(granules(6, 8)));
  EXPECT_FALSE(r.covers(granules(8, 9)));
  EXPECT_TRUE(r.covers(granules(9, 9)));
}

TEST(resident_pieces, around_a_range_are_those_that_have_its_bytes_or_all) {
  resident_pieces r = two_pieces();
  EXPECT_EQ(r.around({3 * granule, 3 * granule + 1}), granules(2, 4));
  EXPECT_EQ(r.around({4 * granule, 5 * granule}), granules(4, 7));
  EXPECT_EQ(r.around({4 * granule - 1, 4 * granule + 1}), granules(2, 7));
  r.add({granules(0, 2), 0}, 1);
  r.add({granules(7, 10), 0}, 1);
  EXPECT_EQ(r.around({3 * granule, 3 * granule + 1}), granules(0, 10));
  r.set_leaving(0, true);
  EXPECT_EQ(r.around({3 * granule, 3 * granule + 1}), granules(2, 4))
      << "the runtime may soon evict a part of the piece";
}

TEST(resident_pieces, cover_everything_when_nothing_is_missing) {
  resident_pieces r = two_pieces();
  r.add({granules(0, 2), 0}, 1);
  r.add({granules(7, 10), 0}, 1);
  EXPECT_TRUE(r.covers(granules(0, 10)));
  r.remove(4 * granule);
  EXPECT_FALSE(r.covers(granules(0, 10)));
  ASSERT_EQ(r.mapped().size(), 3U);
  EXPECT_EQ(r.mapped()[1].range, granules(2, 4));
}

TEST(resident_pieces, those_being_evicted_are_closed_to_work_until_the_eviction_is_cancelled) {
  resident_pieces r = two_pieces();
  r.set_leaving(2 * granule, true);
  EXPECT_TRUE(r.covers(granules(2, 7)));
  EXPECT_FALSE(r.usable(granules(3, 5)));
  EXPECT_TRUE(r.usable(granules(4, 7)));
  r.set_leaving(4 * granule, true);
  r.set_leaving(2 * granule, false);
  EXPECT_TRUE(r.usable(granules(2, 4)));
  EXPECT_FALSE(r.usable(granules(4, 5)));
  r.remove(4 * granule);
  r.add({granules(4, 7), 1}, 2);
  EXPECT_TRUE(r.usable(granules(2, 7)));
}

TEST(resident_pieces, remember_their_last_use) {
  resident_pieces r = two_pieces();
  r.use({4 * granule, 4 * granule + 1}, 9);
  EXPECT_EQ(r.all().find(2 * granule)->second.value.used, 1U);
  EXPECT_EQ(r.all().find(5 * granule)->second.value.used, 9U);
}

TEST(resident_pieces, say_where_copies_to_the_host_may_be_under_way) {
  resident_pieces r = two_pieces();
  EXPECT_FALSE(r.copied_out(granules(0, 10)));
  r.all().find(4 * granule)->second.value.copied.emplace();
  EXPECT_FALSE(r.copied_out(granules(0, 4)));
  EXPECT_TRUE(r.copied_out({4 * granule - 1, 4 * granule + 1}));
}

}  // namespace
}  // namespace hpe::coherence
