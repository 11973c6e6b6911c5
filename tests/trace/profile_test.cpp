#include "runtime/trace/profile.h"

#include <gtest/gtest.h>

#include <string>

namespace hpe::trace {
namespace {

using std::chrono::milliseconds;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(profile, tells_ways_regions_and_lines) {
  profile p;
  constexpr std::uint64_t MiB = 1 << 20;
  p.add(way::up_staged, 64 * MiB, milliseconds(2));
  const int line = __LINE__ - 1;
  p.add(way::touch, 0, milliseconds(1));
  p.moved(0x7000000, 10 * MiB, 3 * MiB, true);
  p.moved(0x7000000, 10 * MiB, 5 * MiB, false);
  p.moved(0x9000000, 10 * MiB, 1 * MiB, false);
  const std::string text = p.report();
  EXPECT_TRUE(contains(text, "to devices, staged by hpe")) << text;
  EXPECT_TRUE(contains(text, "64.0")) << text;
  EXPECT_TRUE(contains(text, "33.6")) << "GB/s\n" << text;
  EXPECT_FALSE(contains(text, "by the driver")) << "nothing went that way\n" << text;
  EXPECT_TRUE(contains(text, "0x7000000")) << text;
  EXPECT_LT(text.find("0x7000000"), text.find("0x9000000")) << "the busier first\n" << text;
  if (std::string(HPE_TEST_SOURCE_LINES).empty()) GTEST_SKIP() << "no source lines in this build";
  EXPECT_TRUE(contains(text, "profile_test.cpp:" + std::to_string(line))) << text;
}

TEST(profile, of_nothing_is_a_head) { EXPECT_LE(profile().report().size(), 120U); }

}  // namespace
}  // namespace hpe::trace
