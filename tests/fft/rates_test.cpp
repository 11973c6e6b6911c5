// Rates are measured even if the devices have only 64 MiB of memory and may not allocate more (HPE_OVERSUBSCRIBE=off).

#include "apps/fft/rates.h"

#include <gtest/gtest.h>

#include <vector>

#include "hpe/hpe.hpp"

namespace hpe::fft {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

class rates : public testing::Test {
 protected:
  void SetUp() override { ASSERT_LE(device_info(0).memory_total, 64 * mebibyte) << "ctest sets the options"; }
};

TEST_F(rates, are_measured_on_small_devices) {
  const copy_rates found = measured_rates();
  EXPECT_GT(found.link, 0);
  EXPECT_GT(found.memory, 0);
}

TEST_F(rates, are_measured_with_what_is_left) {
  const array<std::byte> taken(40 * mebibyte, on_device(0));
  const copy_rates found = measured_rates();
  EXPECT_GT(found.link, 0);
  EXPECT_GT(found.memory, 0);
}

TEST_F(rates, are_unknown_without_memory) {
  std::vector<array<std::byte>> taken;
  try {
    for (;;) taken.emplace_back(mebibyte, on_device(0));
  } catch (const error& e) {
    ASSERT_EQ(e.status(), HPE_ERROR_OUT_OF_MEMORY) << e.what();
  }
  const copy_rates found = measured_rates();
  EXPECT_EQ(found.link, 0);
  EXPECT_EQ(found.memory, 0);
}

}  // namespace
}  // namespace hpe::fft
