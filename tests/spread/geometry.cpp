// Every cut contains each block once, and every placement contains each byte once.

#include <gtest/gtest.h>

#include <random>

#include "tests/spread/fixture.h"

namespace hpe::spread::test {
namespace {

TEST(Cuts, EachBlockIsInOnePart) {
  std::mt19937 engine(1);
  const auto random = [&](std::uint32_t most) { return 1 + static_cast<std::uint32_t>(engine() % most); };
  for (int n = 0; n < 200; ++n) {
    const dimension grid{random(9), random(7), random(5)};
    const std::array<std::uint32_t, 3> parts_along{random(grid[0]), random(grid[1]), random(grid[2])};
    const cut c = cut_grid(grid, parts_along);
    ASSERT_EQ(c.parts.size(), parts_along[0] * parts_along[1] * parts_along[2]);
    for (std::uint32_t z = 0; z < grid[2]; ++z)
      for (std::uint32_t y = 0; y < grid[1]; ++y)
        for (std::uint32_t x = 0; x < grid[0]; ++x) {
          int parts = 0;
          for (const subgrid& part : c.parts) parts += part.contains({x, y, z}) ? 1 : 0;
          EXPECT_EQ(parts, 1) << x << ' ' << y << ' ' << z;
        }
    for (std::size_t a = 0; a < grid.size(); ++a)
      for (const subgrid& part : c.parts) EXPECT_LE(part.count[a], grid[a] / parts_along[a] + 1);
  }
}

TEST(Cuts, TheWholeGridIsOnTheNamedDevice) {
  const cut c = whole_grid({5, 4, 3}, 4, 2);
  EXPECT_FALSE(c.is_spread());
  for (std::size_t d = 0; d < 4; ++d) EXPECT_EQ(c.parts[d].blocks(), d == 2 ? 60U : 0U);
}

TEST(Placements, EachByteHasOneHome) {
  program_on p(4);
  for (const std::uint64_t bytes : {std::uint64_t{1}, granule, 7 * granule + 5, 64 * granule, 101 * granule - 1}) {
    const kernel_array& a = p.allocate(bytes);
    for (const array_placement& how :
         {p.planner().first_placement(bytes, granule), array_placement{array_placement::kind::one, 3, {}, 0},
          array_placement{array_placement::kind::cyclic, 0, {}, granule},
          array_placement{array_placement::kind::cyclic, 0, {}, 3 * granule},
          array_placement{
              array_placement::kind::parts, 0, {0, 2 * granule, 2 * granule, 5 * granule, 200 * granule}, 0}}) {
      std::uint64_t next = 0;
      device_number before = host;
      for (const home_run& run : homes_under(how, a, 4)) {
        EXPECT_EQ(run.first, next);
        EXPECT_LT(run.first, run.last);
        EXPECT_NE(run.home, before);
        EXPECT_EQ(run.first % granule, 0U);
        before = run.home;
        next = run.last;
      }
      EXPECT_EQ(next, bytes) << words_of(how);
    }
  }
}

TEST(Placements, AHomeIsFoundByItsOffset) {
  kernel_array a;
  a.homes = {{0, 10, 2}, {10, 30, 0}, {30, 31, host}};
  EXPECT_EQ(a.home_of(0), 2);
  EXPECT_EQ(a.home_of(9), 2);
  EXPECT_EQ(a.home_of(10), 0);
  EXPECT_EQ(a.home_of(30), host);
}

TEST(Placements, SmallAllocationsBeginOnOneDevice) {
  const spread::planner p(program_on::machine_of(2));
  EXPECT_EQ(p.first_placement(granule, granule).how, array_placement::kind::one);
  const array_placement large = p.first_placement(gib, granule);
  EXPECT_EQ(large.how, array_placement::kind::parts);
  EXPECT_EQ(large.bounds, (std::vector<std::uint64_t>{0, gib / 2, gib}));
}

}  // namespace
}  // namespace hpe::spread::test
