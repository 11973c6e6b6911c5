// Team launches, which run on several devices at once. Other work runs before or after the whole team. The parts of a
// team may wait for each other.

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/core/status.h"

namespace {

using hpe::in;
using hpe::inout;
using hpe::out;

constexpr std::size_t count_of_part = 1 << 16;

/// Launches a team of all devices. Each device adds 1 to its own part of the numbers; device `late` does so long after
/// the others.
void increment_all(const hpe::array<std::uint32_t>& numbers, int late) {
  const int devices = hpe::device_count();
  const std::size_t each = numbers.size() / static_cast<std::size_t>(devices);
  std::vector<hpe::team_member<increment_parameters>> members;
  for (int d = 0; d < devices; ++d)
    members.push_back(
        {d, hpe::grid(1), {numbers.data() + static_cast<std::size_t>(d) * each, each, 1, d == late ? 100000U : 0U}});
  hpe::launch_team(test_kernel().increment, members, {inout(numbers)});
}

bool all_are(const hpe::array<std::uint32_t>& numbers, std::uint32_t value) {
  return std::all_of(numbers.begin(), numbers.end(), [value](std::uint32_t x) { return x == value; });
}

/// Whether every device reaches the memory of every other device.
bool all_reach() {
  const int devices = hpe::device_count();
  for (int d = 0; d < devices; ++d)
    if (hpe::device_info(d).peers != (std::uint64_t{1} << devices) - 1) return false;
  return true;
}

class team : public testing::Test {
 protected:
  void SetUp() override {
    if (!all_reach()) GTEST_SKIP() << "devices that reach each other's memory are needed";
  }
  static constexpr std::size_t count = count_of_part;
  const std::size_t devices = static_cast<std::size_t>(hpe::device_count());
};

TEST_F(team, TheHostWaitsForAllParts) {
  for (int late = 0; late < hpe::device_count(); ++late) {
    const hpe::array<std::uint32_t> numbers(count * devices, hpe::block_distribution());
    increment_all(numbers, late);
    EXPECT_TRUE(all_are(numbers, 1)) << "device " << late << " was late";
  }
}

TEST_F(team, LaunchesWaitForAllParts) {
  for (int late = 0; late < hpe::device_count(); ++late) {
    const hpe::array<std::uint32_t> numbers(count * devices, hpe::block_distribution()), sum(count * devices);
    increment_all(numbers, late);
    hpe::launch_on(0, test_kernel().add, hpe::grid(test_tiles),
                   {sum.data(), numbers.data(), numbers.data(), numbers.size()}, in(numbers), out(sum));
    EXPECT_TRUE(all_are(sum, 2)) << "device " << late << " was late";
  }
}

TEST_F(team, ATeamWaitsForWhatWasQueued) {
  const hpe::array<std::uint32_t> numbers(devices, hpe::block_distribution()), gate(1);
  for (int d = 0; d < hpe::device_count(); ++d) {
    // Kernels set the numbers late, so an addition that comes too early is lost.
    hpe::launch_on(d, test_kernel().increment, hpe::grid(1), {gate.data(), 1, 1, 50000}, inout(gate));
    for (std::size_t i = 0; i < devices; ++i)
      hpe::launch_on(d, test_kernel().fill, hpe::grid(1), {numbers.data() + i, 1, 7}, in(gate),
                     out(numbers.subspan(i, 1)));
    increment_all(numbers, d);
    increment_all(numbers, 0);
    EXPECT_TRUE(all_are(numbers, 9)) << "device " << d;
  }
}

// All parts of a team see the bytes that the host wrote, and a part may write bytes whose home is another device.
TEST_F(team, PartsFindWhatTheHostWrote) {
  const hpe::array<std::uint32_t> numbers(count * devices, hpe::on_device(0));
  std::fill(numbers.begin(), numbers.end(), 41U);
  increment_all(numbers, -1);
  EXPECT_TRUE(all_are(numbers, 42));
}

TEST_F(team, TilesWaitForTilesOfOtherDevices) {
  // One tile for each device, because a soft device may have only one thread.
  const auto tiles = static_cast<std::uint32_t>(devices);
  const auto meet = [&] {
    for (int round = 0; round < 20; ++round) {
      const hpe::array<std::uint32_t> arrived(1, hpe::on_device(0)), results(tiles, hpe::on_device(0));
      std::vector<hpe::team_member<meet_parameters>> members;
      for (std::size_t d = 0; d < devices; ++d)
        members.push_back({static_cast<int>(d), hpe::grid(1), {arrived.data(), tiles, results.data() + d}});
      hpe::launch_team(test_kernel().meet, members, {inout(arrived), inout(results)});
      EXPECT_TRUE(all_are(results, tiles));
    }
  };
  // If several threads launch teams, and other work is queued between them, the devices do not block each other.
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t) threads.emplace_back(meet);
  const hpe::array<std::uint32_t> numbers(1000, hpe::on_device(0));
  for (int i = 0; i < 200; ++i)
    hpe::launch_on(i % hpe::device_count(), test_kernel().increment, hpe::grid(1), {numbers.data(), 1000, 1, 0},
                   inout(numbers));
  threads.clear();
  EXPECT_TRUE(all_are(numbers, 200));
}

TEST(teams, AreChecked) {
  const hpe::array<std::uint32_t> numbers(1000);
  hpeKernel const increment = test_kernel().increment.get();
  const increment_parameters p{numbers.data(), 1000, 1, 0};
  const hpeAccess whole = inout(numbers);
  const hpeTeamMember one{0, hpe::grid(1), &p}, none{9, hpe::grid(1), &p}, empty{0, hpe::grid(1), nullptr};
  const hpeTeamMember twice[] = {one, one};
  const auto launch = [&](const hpeTeamMember* members, std::size_t count, hpeKernel kernel, std::size_t size,
                          std::size_t accesses) {
    return hpeLaunchTeam(members, count, kernel, size, &whole, accesses);
  };
  EXPECT_TRUE(fails(launch(&one, 1, nullptr, sizeof p, 1), HPE_ERROR_INVALID_ARGUMENT, {"kernel"}));
  EXPECT_TRUE(fails(launch(&one, 0, increment, sizeof p, 1), HPE_ERROR_INVALID_ARGUMENT, {"without members"}));
  EXPECT_TRUE(fails(launch(nullptr, 1, increment, sizeof p, 1), HPE_ERROR_INVALID_ARGUMENT, {"without members"}));
  EXPECT_TRUE(fails(launch(twice, 2, increment, sizeof p, 1), HPE_ERROR_INVALID_ARGUMENT, {"device 0 twice"}));
  EXPECT_TRUE(fails(launch(&none, 1, increment, sizeof p, 1), HPE_ERROR_INVALID_DEVICE, {"9"}));
  EXPECT_TRUE(fails(launch(&empty, 1, increment, sizeof p, 1), HPE_ERROR_INVALID_ARGUMENT, {"null"}));
  EXPECT_TRUE(fails(launch(&one, 1, increment, 4001, 1), HPE_ERROR_INVALID_ARGUMENT, {"4001", "4000"}));
  EXPECT_TRUE(fails(launch(&one, 1, increment, sizeof p, HPE_ALL), HPE_ERROR_INVALID_ARGUMENT, {"HPE_ALL"}));
  const hpeAccess elsewhere{&one, 4, HPE_IN};
  EXPECT_TRUE(fails(hpeLaunchTeam(&one, 1, increment, sizeof p, &elsewhere, 1), HPE_ERROR_NOT_A_REGION));
  EXPECT_TRUE(fails(hpeLaunchTeam(&one, 1, increment, sizeof p, nullptr, 1), HPE_ERROR_INVALID_ARGUMENT, {"null"}));
  EXPECT_TRUE(all_are(numbers, 0));
  EXPECT_EQ(launch(&one, 1, increment, sizeof p, 1), HPE_SUCCESS);
  EXPECT_TRUE(all_are(numbers, 1));
}

// If a device of the team does not reach memory that the team uses, this memory migrates, as for a launch on one
// device.
TEST(teams, MemoryOutOfReachIsMoved) {
  if (hpe::device_count() != 4 || hpe::device_info(0).peers != 3 || hpe::device_info(2).peers != 12)
    GTEST_SKIP() << "needs two pairs of devices";
  const hpe::array<std::uint32_t> numbers(2 * count_of_part, hpe::on_device(0));
  std::fill(numbers.begin(), numbers.end(), 7U);
  std::vector<hpe::team_member<increment_parameters>> members;
  for (int d = 2; d < 4; ++d)
    members.push_back({d, hpe::grid(1), {numbers.data() + (d - 2) * count_of_part, count_of_part, 1, 0}});
  hpe::launch_team(test_kernel().increment, members, {inout(numbers)});
  EXPECT_TRUE(all_are(numbers, 8));
  EXPECT_EQ(hpe::pointer_info(numbers.data()).device, 2);
}

TEST(teams, NeedMemoryThatAllReach) {
  if (all_reach()) GTEST_SKIP() << "needs devices that do not reach each other's memory";
  const hpe::array<std::uint32_t> numbers(1000, hpe::on_device(0));
  std::fill(numbers.begin(), numbers.end(), 7U);
  std::vector<hpe::team_member<increment_parameters>> members;
  for (int d = 0; d < hpe::device_count(); ++d) members.push_back({d, hpe::grid(1), {numbers.data(), 1000, 1, 0}});
  try {
    hpe::launch_team(test_kernel().increment, members, {inout(numbers)});
    FAIL() << "no error";
  } catch (const hpe::error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_NOT_SUPPORTED) << e.what();
    EXPECT_NE(std::string(e.what()).find("increment"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(all_are(numbers, 7));
}

}  // namespace
