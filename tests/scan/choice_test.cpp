// Tests which way of scanning hpe chooses for a batch and a topology, without devices.

#include "apps/scan/choice/choice.h"

#include <gtest/gtest.h>

#include "apps/scan/choice/premises.h"
#include "kernels/scan.h"

namespace hpe::scan::testing {
namespace {

/// Returns the devices of `count` switches with `each` devices; a device reaches only the devices on its switch.
std::vector<device_traits> switches(int count, int each, hpeDeviceKind kind = HPE_DEVICE_CUDA) {
  std::vector<device_traits> all;
  for (int d = 0; d < count * each; ++d)
    all.push_back({d, kind, "device", 4, ((std::uint64_t{1} << each) - 1) << (d / each * each)});
  return all;
}

choice automatic(std::uint64_t length, std::uint64_t problems, const std::vector<device_traits>& devices,
                 bool possible = true) {
  return choose({length, problems}, devices, possible, algorithm::automatic, split::automatic);
}

TEST(choice, link_domains_are_the_switches) {
  const std::vector<std::vector<int>> wanted{{0, 1, 2, 3}, {4, 5, 6, 7}};
  EXPECT_EQ(link_domains(switches(2, 4)), wanted);
  EXPECT_EQ(link_domains(switches(1, 8)).size(), 1U);
  EXPECT_EQ(link_domains(switches(3, 1)).size(), 3U);
}

TEST(choice, the_spread_follows_batch_and_topology) {
  EXPECT_EQ(automatic(1 << 20, 1, switches(1, 1)).spread, split::problems);
  EXPECT_EQ(automatic(1 << 20, 1, switches(1, 4)).spread, split::mps);
  EXPECT_EQ(automatic(1 << 20, 8, switches(1, 4)).spread, split::problems);
  EXPECT_EQ(automatic(1 << 20, 5, switches(1, 4)).spread, split::mps);
  EXPECT_EQ(automatic(1 << 20, 2, switches(2, 4)).spread, split::mp_pc);
  EXPECT_EQ(automatic(1 << 20, 1, switches(2, 4)).spread, split::mps);
  EXPECT_EQ(automatic(1 << 20, 800, switches(2, 4)).spread, split::problems);
}

TEST(choice, one_pass_where_the_devices_can) {
  EXPECT_EQ(automatic(1 << 20, 1, switches(1, 4)).how, algorithm::single_pass);
  EXPECT_EQ(automatic(1 << 20, 1, switches(1, 4), false).how, algorithm::three_stages);
  EXPECT_EQ(automatic(1 << 20, 1, switches(2, 4)).how, algorithm::three_stages);
  EXPECT_EQ(automatic(1 << 20, 2, switches(2, 4)).how, algorithm::single_pass);
  EXPECT_THROW((void)choose({9, 1}, switches(1, 1), false, algorithm::single_pass, split::automatic), error);
  EXPECT_THROW((void)choose({9, 1}, switches(2, 1), true, algorithm::single_pass, split::mps), error);
}

TEST(choice, teams_have_every_problem_once) {
  for (const split spread : {split::problems, split::mps, split::mp_pc})
    for (const std::uint64_t problems : {1, 2, 3, 7, 8, 1000}) {
      const choice made = choose({10, problems}, switches(2, 3), true, algorithm::three_stages, spread);
      std::uint64_t next = 0;
      for (const team& t : made.teams) {
        EXPECT_EQ(t.first, next);
        EXPECT_GT(t.count, 0U);
        next += t.count;
      }
      EXPECT_EQ(next, problems);
    }
}

TEST(choice, every_decision_has_a_reason) {
  for (const std::uint64_t problems : {1, 3, 64})
    EXPECT_GE(automatic(1 << 20, problems, switches(2, 2)).reasons.size(), 2U);
}

TEST(premises, of_the_paper_s_own_gpu) {
  // Table 3: a multiprocessor of compute capability 3.7 holds 16 blocks and 64 warps, so four warps in a block are
  // best.
  const stage_parameters kepler = by_premises({16, 64}, 4);
  EXPECT_EQ(kepler.l, 7U);
  EXPECT_EQ(kepler.p, 3U);
  EXPECT_EQ(kepler.s, 5U);
  EXPECT_EQ(by_premises({16, 64}, 8).p, 2U);
}

TEST(premises, iterations_are_powers_of_two_within_the_equations) {
  const stage_parameters kepler = by_premises({16, 64}, 4);
  const std::uint64_t step = kepler.per_iteration(), stage_two = 16 * step;
  const auto all = iterations_to_try(1 << 28, 1, kepler, stage_two, 1);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], std::uint64_t{1} << i);
  EXPECT_LE(all.back(), (std::uint64_t{1} << 28) / (stage_two * step));
  EXPECT_GT(2 * all.back(), (std::uint64_t{1} << 28) / (stage_two * step));
  EXPECT_EQ(iterations_to_try(1, 1, kepler, stage_two, 8).size(), 1U);
  // Equation 2: each of eight devices has a chunk.
  EXPECT_LE(8 * step * iterations_to_try(1 << 14, 1 << 14, kepler, stage_two, 8).back(), std::uint64_t{1} << 14);
}

/// Every element of every problem is in exactly one tile, and no tile has more than `room` elements.
TEST(tiling, covers_everything_once) {
  constexpr std::uint32_t room = 64, vector = 4;
  for (std::uint64_t length = 1; length < 300; length += length < 140 ? 1 : 7)
    for (const std::uint64_t problems : {1, 2, 3, 50})
      for (const bool aligned : {true, false}) {
        const kernels::scan_tiling t = kernels::make_tiling(length, problems, room, vector, aligned);
        std::uint64_t next = 0;
        for (std::uint64_t n = 0; n < t.count; ++n) {
          const kernels::scan_tile tile = kernels::tile_of(t, n);
          ASSERT_EQ(tile.begin, next) << length << " x " << problems;
          const std::uint64_t crooked = aligned && tile.begin % vector == 0 ? 0 : vector - 1;
          ASSERT_GT(tile.count, 0U);
          ASSERT_LE(tile.count + crooked, room) << length << " x " << problems << " aligned " << aligned;
          ASSERT_EQ(tile.first + tile.index, n);
          if (t.several_problems())
            ASSERT_EQ(tile.begin % length, 0U);
          else
            ASSERT_EQ(tile.begin / length, (tile.begin + tile.count - 1) / length);
          next += tile.count;
        }
        ASSERT_EQ(next, length * problems);
      }
}

}  // namespace
}  // namespace hpe::scan::testing
