#include <gtest/gtest.h>

#include <cstdint>

#include "runtime/base/granule.h"
#include "runtime/memory/granule_table.h"
#include "tests/memory/expect_error.h"

namespace {

using namespace hpe;
using memory::distribute;
using homes = std::vector<std::uint16_t>;

TEST(Distribution, DefaultIsBlocksOverAllDevices) {
  EXPECT_EQ(distribute(nullptr, 6, 3), (homes{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(distribute(nullptr, 5, 1), (homes{0, 0, 0, 0, 0}));
}

TEST(Distribution, BlocksDifferByOneGranuleAtMost) {
  EXPECT_EQ(distribute(nullptr, 8, 3), (homes{0, 0, 0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(distribute(nullptr, 2, 3), (homes{0, 1})) << "the last device gets no granule";
}

TEST(Distribution, FollowsTheOrderOfTheList) {
  const int devices[] = {3, 1};
  const hpeDistribution block{HPE_DISTRIBUTE_BLOCK, 0, devices, 2};
  const hpeDistribution cyclic{HPE_DISTRIBUTE_CYCLIC, 0, devices, 2};
  EXPECT_EQ(distribute(&block, 5, 4), (homes{3, 3, 3, 1, 1}));
  EXPECT_EQ(distribute(&cyclic, 5, 4), (homes{3, 1, 3, 1, 3}));
}

TEST(Distribution, ChunksAreRoundedUpToGranules) {
  const hpeDistribution even{HPE_DISTRIBUTE_BLOCK_CYCLIC, 2 * granule_size, nullptr, 0};
  const hpeDistribution odd{HPE_DISTRIBUTE_BLOCK_CYCLIC, granule_size + 1, nullptr, 0};
  const hpeDistribution tiny{HPE_DISTRIBUTE_BLOCK_CYCLIC, 1, nullptr, 0};
  const hpeDistribution huge{HPE_DISTRIBUTE_BLOCK_CYCLIC, SIZE_MAX, nullptr, 0};
  EXPECT_EQ(distribute(&even, 7, 2), (homes{0, 0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(distribute(&odd, 7, 2), (homes{0, 0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(distribute(&tiny, 3, 2), (homes{0, 1, 0}));
  EXPECT_EQ(distribute(&huge, 3, 2), (homes{0, 0, 0}));
}

TEST(Distribution, InvalidOnesAreRefusedWithTheValidOnes) {
  const int unknown[] = {0, 4};
  const int negative[] = {-1};
  const int repeated[] = {1, 0, 1};
  const auto expect = [](hpeStatus status, const char* words, const hpeDistribution& d) {
    expect_error(status, words, [&] { (void)distribute(&d, 4, 4); });
  };
  expect(HPE_ERROR_INVALID_DEVICE, "device 4; there are devices 0 to 3", {HPE_DISTRIBUTE_BLOCK, 0, unknown, 2});
  expect(HPE_ERROR_INVALID_DEVICE, "device -1", {HPE_DISTRIBUTE_CYCLIC, 0, negative, 1});
  expect(HPE_ERROR_INVALID_ARGUMENT, "device 1 twice", {HPE_DISTRIBUTE_CYCLIC, 0, repeated, 3});
  expect(HPE_ERROR_INVALID_ARGUMENT, "over no devices", {HPE_DISTRIBUTE_BLOCK, 0, unknown, 0});
  expect(HPE_ERROR_INVALID_ARGUMENT, "0 bytes", {HPE_DISTRIBUTE_BLOCK_CYCLIC, 0, nullptr, 0});
  expect(HPE_ERROR_INVALID_ARGUMENT, "kind 3", {static_cast<hpeDistributionKind>(3), 0, nullptr, 0});
}

}  // namespace
