// Tests the options that all benchmarks have.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "bench/common/measure.h"
#include "hpe/hpe.hpp"

namespace hpe::bench {
namespace {

arguments parsed(const char* devices, std::vector<std::string> words) {
  ::setenv("HPE_DEVICES", devices, 1);  // NOLINT(concurrency-mt-unsafe): before hpe starts
  std::vector<char*> argv;
  words.insert(words.begin(), "bench-test");
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse(static_cast<int>(words.size()), argv.data(), "a test");
}

TEST(Arguments, DevicesAreTheFirstOnes) {
  EXPECT_EQ(parsed("soft:3", {"--devices", "2", "--repeats", "5"}).repeats, 5U);
  EXPECT_STREQ(std::getenv("HPE_DEVICES"), "soft:2");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(device_count(), 2);
}

TEST(Arguments, AllDevicesKeepTheirTopology) {
  static_cast<void>(parsed("soft:2x1", {"--devices", "2"}));
  EXPECT_STREQ(std::getenv("HPE_DEVICES"), "soft:2x1");  // NOLINT(concurrency-mt-unsafe)
}

TEST(Arguments, DevicesThatCannotBeChosenAreRefused) {
  EXPECT_EXIT(static_cast<void>(parsed("soft:3", {"--devices", "4"})), testing::ExitedWithCode(2), "there are 3");
  EXPECT_EXIT(static_cast<void>(parsed("soft:2x1", {"--devices", "1"})), testing::ExitedWithCode(2), "soft:2x1");
  EXPECT_EXIT(static_cast<void>(parsed("soft:3", {"--devices", "0"})), testing::ExitedWithCode(2), "from 1");
}

}  // namespace
}  // namespace hpe::bench
