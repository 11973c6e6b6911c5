#include "runtime/coherence/resident_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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

/// What a piece is, without the bookkeeping of resident_pieces.
struct plain_piece {
  byte_range range;
  std::uint16_t home = 0;
  std::uint64_t used = 0;
  bool zero_copy = false, leaving = false, copied = false, outdated = false, fingerprint = false;
};

/// The answers of resident_pieces, from a list of pieces.
struct plain_pieces {
  std::uint64_t bytes = 0;
  std::vector<plain_piece> all;

  template <class Wanted>
  [[nodiscard]] bool any(byte_range r, const Wanted& wanted) const {
    return std::any_of(all.begin(), all.end(), [&](const plain_piece& each) {
      return each.range.begin < r.end && each.range.end > r.begin && wanted(each);
    });
  }
  [[nodiscard]] bool covers(byte_range r) const {
    for (std::uint64_t at = r.begin; at < r.end;) {
      const auto found = std::find_if(all.begin(), all.end(), [&](const plain_piece& each) {
        return each.range.begin <= at && at < each.range.end;
      });
      if (found == all.end()) return false;
      at = found->range.end;
    }
    return true;
  }
  [[nodiscard]] bool usable(byte_range r) const {
    return covers(r) && !any(r, [](const plain_piece& each) { return each.leaving; });
  }
  [[nodiscard]] byte_range around(byte_range r) const {
    const byte_range whole{0, bytes};
    if (usable(whole) && !any(whole, [](const plain_piece& each) { return each.zero_copy; })) return whole;
    byte_range result = r;
    for (const plain_piece& each : all)
      if (each.range.begin < r.end && each.range.end > r.begin)
        result = {std::min(result.begin, each.range.begin), std::max(result.end, each.range.end)};
    return result;
  }
};

// Every answer after every change, for ranges that begin and end at, one byte before and one byte after the ends of
// pieces.
TEST(resident_pieces, agree_with_a_list_of_pieces) {
  std::mt19937 random(5);
  const auto below = [&](std::uint64_t end) { return std::uint64_t{random()} % end; };
  for (int round = 0; round < 60; ++round) {
    resident_pieces tested;
    // The second reset of an object must forget the first region.
    for (int use = 0; use < 2; ++use) {
      plain_pieces plain;
      plain.bytes = (1 + below(6)) * granule;
      tested.reset(plain.bytes);
      for (int step = 0; step < 60; ++step) {
        const bool is_empty = plain.all.empty();
        plain_piece* const one = is_empty ? nullptr : &plain.all[below(plain.all.size())];
        switch (below(8)) {
          case 0:
          case 1: {
            const std::uint64_t first = below(plain.bytes / granule);
            const std::uint64_t end = first + 1 + below(plain.bytes / granule - first);
            const byte_range range = granules(first, end);
            if (plain.any(range, [](const plain_piece&) { return true; })) break;
            plain.all.push_back({range, static_cast<std::uint16_t>(below(3)), below(9), below(3) == 0});
            tested.add({range, plain.all.back().home, plain.all.back().zero_copy}, plain.all.back().used);
            break;
          }
          case 2:
            if (is_empty || below(2) == 0) break;
            tested.remove(one->range.begin);
            plain.all.erase(plain.all.begin() + (one - plain.all.data()));
            break;
          case 3:
            if (is_empty) break;
            one->leaving = below(2) == 0;
            tested.set_leaving(one->range.begin, one->leaving);
            break;
          case 4:
            if (is_empty) break;
            one->zero_copy = below(2) == 0;
            tested.set_zero_copy(one->range.begin, one->zero_copy);
            break;
          case 5:
            if (is_empty) break;
            one->fingerprint = true;
            tested.set_fingerprint(one->range.begin, {});
            EXPECT_FALSE(tested.all().find(one->range.begin)->second.value.latest);
            tested.all().find(one->range.begin)->second.value.latest.emplace();
            break;
          case 6:
            if (is_empty) break;
            one->copied = true;
            one->outdated = false;
            tested.all().find(one->range.begin)->second.value.copied.emplace();
            break;
          default: {
            const std::uint64_t begin = below(plain.bytes);
            const byte_range range{begin, begin + 1 + below(plain.bytes - begin)};
            const int how = static_cast<int>(below(3));
            if (how == 0) tested.use(range, 100);
            if (how == 1) tested.forget_fingerprints(range);
            if (how == 2) tested.outdate(range);
            for (plain_piece& each : plain.all) {
              if (each.range.begin >= range.end || each.range.end <= range.begin) continue;
              if (how == 0) each.used = 100;
              if (how != 0) each.fingerprint = false;
              if (how == 2 && each.copied) each.outdated = true;
            }
          }
        }
        std::sort(plain.all.begin(), plain.all.end(),
                  [](const plain_piece& a, const plain_piece& b) { return a.range.begin < b.range.begin; });
        const std::vector<mapped_range> mapped = tested.mapped();
        ASSERT_EQ(mapped.size(), plain.all.size());
        for (std::size_t n = 0; n < mapped.size(); ++n) {
          const plain_piece& wanted = plain.all[n];
          const resident_piece& its = tested.all().find(wanted.range.begin)->second.value;
          ASSERT_EQ(mapped[n].range, wanted.range);
          ASSERT_EQ(mapped[n].home, wanted.home);
          ASSERT_EQ(mapped[n].zero_copy, wanted.zero_copy);
          ASSERT_EQ(its.used, wanted.used);
          ASSERT_EQ(its.on_host.has_value(), wanted.fingerprint);
          ASSERT_EQ(its.latest.has_value(), wanted.fingerprint);
          ASSERT_EQ(its.copied.has_value(), wanted.copied);
          ASSERT_EQ(its.copied && its.copied->outdated, wanted.outdated);
        }
        std::vector<std::uint64_t> ends{0, 1, plain.bytes - 1, plain.bytes};
        for (const plain_piece& each : plain.all)
          for (const std::uint64_t end : {each.range.begin, each.range.end})
            ends.insert(ends.end(), {end, end + 1, end == 0 ? 0 : end - 1});
        for (int n = 0; n < 12; ++n) {
          byte_range r{ends[below(ends.size())], ends[below(ends.size())]};
          if (r.begin > r.end) std::swap(r.begin, r.end);
          if (r.empty() || r.end > plain.bytes) continue;
          ASSERT_EQ(tested.covers(r), plain.covers(r)) << r.begin << ' ' << r.end;
          ASSERT_EQ(tested.usable(r), plain.usable(r)) << r.begin << ' ' << r.end;
          ASSERT_EQ(tested.has_zero_copy(r), plain.any(r, [](const plain_piece& each) { return each.zero_copy; }));
          ASSERT_EQ(tested.copied_out(r), plain.any(r, [](const plain_piece& each) { return each.copied; }));
          if (plain.usable(r)) {
            ASSERT_EQ(tested.around(r), plain.around(r)) << r.begin << ' ' << r.end;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hpe::coherence
