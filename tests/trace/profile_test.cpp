#include "runtime/trace/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>

namespace hpe::trace {
namespace {

using std::chrono::milliseconds;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(profile, lists_ways_regions_and_lines) {
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

std::size_t lines_after(const std::string& text, const std::string& heading) {
  const std::size_t begin = text.find(heading);
  const std::string rest = begin == std::string::npos ? "" : text.substr(begin + heading.size() + 1);
  const std::size_t next = rest.find("\n  where");
  return static_cast<std::size_t>(std::count(rest.begin(), rest.end(), '\n')) -
         (next == std::string::npos ? 0 : lines_after(rest, "  where the time went") + 1);
}

[[gnu::noinline]] void other_place(profile& p) { p.add(way::touch, 1, milliseconds(1)); }

TEST(profile, lists_the_busiest_places_up_to_a_limit) {
  profile few;
  few.add(way::touch, 1, milliseconds(2));
  other_place(few);
  few.moved(0x7000000, 4096, 4096, true);
  EXPECT_EQ(lines_after(few.report(), "  device memory that CPU code used"), 1U) << few.report();
  EXPECT_GE(lines_after(few.report(), "  where the time went"), 1U) << few.report();
  EXPECT_LE(lines_after(few.report(), "  where the time went"), 2U) << few.report();
  profile many;
  for (std::uintptr_t r = 1; r <= 20; ++r) many.moved(r * 0x1000000, 4096, r * 4096, true);
  EXPECT_EQ(lines_after(many.report(), "  device memory that CPU code used"), 12U) << many.report();
  EXPECT_TRUE(contains(many.report(), " 0x14000000 of")) << many.report();
  EXPECT_FALSE(contains(many.report(), " 0x8000000 of")) << many.report();
}

TEST(profile, lists_places_with_equal_times) {
  profile p;
  for (unsigned w = 0; w < way_count; ++w) {
    const auto how = static_cast<way>(w);
    p.add(how, 0, milliseconds(1));  // each line is a separate call site
    p.add(how, 0, milliseconds(1));
    p.add(how, 0, milliseconds(1));
    p.add(how, 0, milliseconds(1));
  }
  const std::string text = p.report();
  EXPECT_GE(lines_after(text, "  where the time went"), way_count) << text;
  EXPECT_LE(lines_after(text, "  where the time went"), 12U) << text;
}

TEST(profile, can_be_printed_while_transfers_are_added) {
  profile p;
  constexpr std::uintptr_t regions = 5000;
  std::thread adding([&] {
    for (std::uintptr_t r = 0; r < regions; ++r) p.moved(0x7000000 + (r * 7919 % regions) * 4096, 4096, 1, true);
  });
  for (int n = 0; n < 100; ++n) EXPECT_TRUE(contains(p.report(), "hpe profile"));
  adding.join();
  EXPECT_TRUE(contains(p.report(), "of         4096 bytes")) << p.report();
}

TEST(profile, of_nothing_is_a_head) { EXPECT_LE(profile().report().size(), 120U); }

}  // namespace
}  // namespace hpe::trace
