// Homes, cuts and placements, compared with a direct calculation for each byte and each block.

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "runtime/ptx/program/ptx_program.h"
#include "runtime/spread/array_placement.h"

namespace hpe::spread {
namespace {

using kind = array_placement::kind;

TEST(Placements, HaveWords) {
  const auto words = [](kind how, std::uint64_t run = 0) {
    array_placement p;
    p.how = how;
    p.home = 3;
    p.run = run;
    p.bounds = {0, 10, 20, 30};
    return words_of(p);
  };
  EXPECT_EQ(words(kind::stay), "as it is");
  EXPECT_EQ(words(kind::one), "on device 3");
  EXPECT_EQ(words(kind::parts), "in 3 parts");
  EXPECT_EQ(words(kind::replicated), "a copy on each device");
  constexpr std::uint64_t mib = 1U << 20U;
  const std::pair<std::uint64_t, const char*> runs[] = {{mib, "1 MiB"},
                                                        {2 * mib, "2 MiB"},
                                                        {2 * mib + 1024, "2049 KiB"},
                                                        {16 * mib - 1024, "16383 KiB"},
                                                        {16 * mib + mib / 2 - 1, "16 MiB"},
                                                        {16 * mib + mib / 2, "17 MiB"},
                                                        {511, "0 KiB"},
                                                        {512, "1 KiB"},
                                                        {1024, "1 KiB"},
                                                        {1535, "1 KiB"},
                                                        {1536, "2 KiB"}};
  for (const auto& [bytes, text] : runs)
    EXPECT_EQ(words(kind::cyclic, bytes), std::string("dealt out in runs of ") + text);
}

TEST(Placements, GiveEachByteOneHome) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    const auto devices = 1 + static_cast<std::uint32_t>(random() % 4);
    kernel_array a;
    a.bytes = 1 + random() % 40;
    a.homes = {{0, a.bytes, 1}};
    array_placement p;
    p.home = static_cast<device_number>(random() % devices);
    p.run = 1 + random() % 12;
    p.bounds.assign(devices + 1, 0);
    for (std::uint32_t d = 1; d <= devices; ++d) p.bounds[d] = p.bounds[d - 1] + random() % 20;
    p.bounds.back() = std::max<std::uint64_t>(p.bounds.back(), a.bytes + random() % 2);
    for (const kind how : {kind::stay, kind::replicated, kind::one, kind::parts, kind::cyclic}) {
      p.how = how;
      kernel_array placed = a;
      placed.homes = homes_under(p, a, devices);
      std::uint64_t at = 0;
      for (const home_run& run : placed.homes) {
        EXPECT_EQ(run.first, at) << "without gaps";
        EXPECT_LT(run.first, run.last);
        at = run.last;
      }
      ASSERT_EQ(at, a.bytes);
      for (std::size_t n = 1; n < placed.homes.size(); ++n)
        EXPECT_NE(placed.homes[n].home, placed.homes[n - 1].home) << "joined";
      for (std::uint64_t byte = 0; byte < a.bytes; ++byte) {
        device_number home = 1;
        if (how == kind::one) home = p.home;
        if (how == kind::cyclic) home = static_cast<device_number>(byte / p.run % devices);
        if (how == kind::parts) {
          home = 0;
          while (p.bounds[static_cast<std::size_t>(home) + 1] <= byte) ++home;
        }
        ASSERT_EQ(placed.home_of(byte), home) << byte;
      }
      EXPECT_EQ(placed.home_of(a.bytes), placed.homes.back().home) << "behind the end, the last home";
    }
  }
  EXPECT_EQ(kernel_array{}.home_of(0), host);
}

TEST(Placements, CutsDivideTheBlocks) {
  std::mt19937 random(9);
  for (int round = 0; round < 100; ++round) {
    const auto one_to = [&](std::uint32_t most) { return 1 + static_cast<std::uint32_t>(random() % most); };
    const dimension grid{one_to(7), one_to(5), one_to(4)};
    const std::array<std::uint32_t, 3> along{one_to(4), one_to(3), one_to(2)};
    const std::uint32_t devices = one_to(5);
    const auto check = [&](const cut& all, bool is_even) {
      for (std::uint32_t z = 0; z < grid[2]; ++z)
        for (std::uint32_t y = 0; y < grid[1]; ++y)
          for (std::uint32_t x = 0; x < grid[0]; ++x) {
            int parts = 0;
            for (const subgrid& part : all.parts) parts += part.contains({x, y, z}) ? 1 : 0;
            ASSERT_EQ(parts, 1);
          }
      if (!is_even) return;
      for (const subgrid& part : all.parts)
        for (std::size_t a = 0; a < 3; ++a) {
          EXPECT_GE(part.count[a], grid[a] / all.parts_along[a]);
          EXPECT_LE(part.count[a], (grid[a] + all.parts_along[a] - 1) / all.parts_along[a]);
        }
    };
    const cut cut_along = cut_grid(grid, along);
    EXPECT_EQ(cut_along.parts.size(), along[0] * along[1] * along[2]);
    check(cut_along, true);
    const cut even = cut_evenly(grid, devices);
    EXPECT_EQ(even.parts.size(), devices);
    check(even, false);
    std::size_t axis = 2;
    while (axis > 0 && grid[axis] == 1) --axis;
    EXPECT_EQ(even.parts_along[axis], std::min(devices, grid[axis])) << "the slowest axis with several blocks";
    const auto on = static_cast<device_number>(random() % devices);
    const cut whole = whole_grid(grid, devices, on);
    EXPECT_EQ(whole.parts.size(), devices);
    EXPECT_EQ(whole.parts[static_cast<std::size_t>(on)].count, grid);
    EXPECT_FALSE(whole.is_spread());
    check(whole, false);
  }
}

TEST(Placements, LaunchesHaveTheLimitsOfGpus) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto possible = [&](std::uint32_t blocks, std::uint32_t threads) {
      launch l;
      l.grid = {1, 1, 1};
      l.block = {1, 1, 1};
      l.grid[axis] = blocks;
      l.block[axis] = threads;
      return l.is_possible();
    };
    const auto blocks = static_cast<std::uint32_t>(ptx::most_blocks[axis]);
    const auto threads = static_cast<std::uint32_t>(ptx::widest_block[axis]);
    EXPECT_TRUE(possible(1, 1));
    EXPECT_TRUE(possible(blocks, threads));
    EXPECT_FALSE(possible(blocks + 1, 1));
    EXPECT_FALSE(possible(1, threads + 1));
    EXPECT_FALSE(possible(0, 1));
    EXPECT_FALSE(possible(1, 0));
  }
  const std::uint64_t pointers[] = {0x1122334455667788, 0x99};
  launch l;
  l.parameters = pointers;
  l.parameter_bytes = 16;
  EXPECT_EQ(l.pointer_at(0), 0x1122334455667788U);
  EXPECT_EQ(l.pointer_at(8), 0x99U);
  EXPECT_EQ(l.pointer_at(9), 0U) << "not wholly in the parameters";
  l.parameter_bytes = 15;
  EXPECT_EQ(l.pointer_at(8), 0U);
}

}  // namespace
}  // namespace hpe::spread
