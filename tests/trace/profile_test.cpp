#include "runtime/trace/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/trace/status_page.h"

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
  EXPECT_FALSE(contains(text, "by the driver")) << "no bytes were copied by the driver\n" << text;
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
    p.add(how, 0, milliseconds(1));  // each source line is a separate call site
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

TEST(profile, tells_all_numbers_of_a_place_and_an_allocation) {
  profile p;
  const auto add = [&p](std::uint64_t bytes, int milli, std::uintptr_t address) {
    p.add(way::touch, bytes, milliseconds(milli), reinterpret_cast<const void*>(address));
  };
  for (const std::uintptr_t address : {0x5000, 0, 0x3000, 0x8000, 0}) add(10, 2, address);
  EXPECT_TRUE(contains(p.json(), R"("calls":5,"bytes":50,"seconds":0.010000000,"lowest":12288,"highest":32768})"))
      << p.json();
  EXPECT_TRUE(contains(p.json(), R"("way":"touches of device memory")")) << p.json();

  p.moved(0x10000, 4096, 100, true);
  p.moved(0x10000, 4096, 200, true);
  p.moved(0x10000, 4096, 7, false);
  EXPECT_TRUE(contains(
      p.json(), R"("to_host":7,"to_device":300,"moves_to_host":1,"moves_to_device":2,"used_begin":0,"used_end":0})"))
      << p.json();
  p.used(0x10000, 8192, 500, 600);
  p.used(0x10000, 8192, 550, 700);
  p.used(0x10000, 8192, 400, 450);
  EXPECT_TRUE(contains(p.json(), R"("address":65536,"bytes":8192,"made_at":"","to_host":7)")) << p.json();
  EXPECT_TRUE(contains(p.json(), R"("used_begin":400,"used_end":700})")) << p.json();
  // A region in the profile gets the name of the first allocation inside it. Tests an allocation at the region's first
  // byte, at its last byte, directly after it and directly before it.
  for (const auto& [address, is_inside] :
       {std::pair{0x20000UL, true}, {0x20000UL + 4095, true}, {0x20000UL + 4096, false}, {0x1ffffUL, false}}) {
    profile other;
    other.moved(0x20000, 4096, 1, true);
    other.allocated(address);
    EXPECT_EQ(contains(other.json(), R"("made_at":"")"), !is_inside) << address;
  }
}

TEST(profile, tells_the_busier_region_first_by_the_bytes_of_both_directions) {
  profile p;
  p.moved(0x1000000, 4096, 10, true);
  p.moved(0x2000000, 4096, 6, true);
  p.moved(0x2000000, 4096, 5, false);
  p.used(0x3000000, 4096, 0, 1);  // none of this region's bytes were moved
  const std::string text = p.report();
  EXPECT_LT(text.find("0x2000000"), text.find("0x1000000")) << text;
  EXPECT_FALSE(contains(text, "0x3000000")) << text;
  EXPECT_TRUE(contains(p.json(), R"("address":50331648)")) << p.json();
}

TEST(profile, tells_of_room_that_data_made_and_of_the_spill_file_if_there_was_any) {
  counters& count = status_page::own().count;
  const auto report = [](const char* part) { return contains(profile().report(), part); };
  EXPECT_FALSE(report("larger than")) << "nothing was spilled or evicted";
  EXPECT_FALSE(report("the run:"));
  count.bytes_spilled = 3 << 20;
  count.bytes_unspilled = 1 << 20;
  EXPECT_TRUE(report("  data larger than host memory: 3.0 MiB were written to the spill file, 1.0 MiB read from it\n"));
  count.bytes_evicted = 5 << 20;
  count.bytes_written_back = 4 << 20;
  count.bytes_brought_in = 2 << 20;
  count.evicting_ns = 1'500'000'000;
  EXPECT_TRUE(
      report("data larger than device memory: 5.0 MiB were evicted, of which 4.0 MiB were copied to the host; 2.0 MiB "
             "were brought "
             "in; threads waited 1.500000 s for room\n"));
  EXPECT_FALSE(report("shared with other processes"));
  count.turn_wait_ns = 250'000'000;
  EXPECT_TRUE(report("0.0 MiB were given back to them; threads waited 0.250000 s for the turn of this process"));
  count.turn_wait_ns = 0;
  count.bytes_given_back = 1 << 20;
  EXPECT_TRUE(report("1.0 MiB were given back to them; threads waited 0.000000 s"));
  count.launches = 6;
  count.bytes_to_device = 77;
  count.bytes_to_host = 78;
  const std::array<status_page::device, 2> devices{};
  for (const unsigned n : {1U, 2U}) {
    status_page::own().tell_devices(devices.data(), n);
    profile p;
    p.add(way::touch, 0, milliseconds(250));
    p.add(way::across, 0, milliseconds(500));
    const std::string text = p.report();
    EXPECT_TRUE(contains(text, "of which threads waited 0.750000 s for data; 6 launches on " +
                                   std::string(n == 1 ? "1 device;" : "2 devices;") +
                                   " 77 bytes to devices, 78 bytes to the host"))
        << text;
  }
  for (counters::counter* const each :
       {&count.bytes_spilled, &count.bytes_unspilled, &count.bytes_evicted, &count.bytes_written_back,
        &count.bytes_brought_in, &count.evicting_ns, &count.bytes_given_back, &count.launches, &count.bytes_to_device,
        &count.bytes_to_host})
    *each = 0;
}

TEST(status, has_as_many_devices_as_there_is_room_for) {
  std::vector<status_page::device> many(counters::most_devices + 2);
  for (std::size_t d = 0; d < many.size(); ++d) many[d].memory = 100 + d;
  status_page& page = status_page::own();
  for (const std::uint32_t n :
       {0U, 1U, counters::most_devices - 1, counters::most_devices, counters::most_devices + 1}) {
    page.tell_devices(many.data(), n);
    EXPECT_EQ(page.devices, std::min(n, counters::most_devices));
    if (n > 0) {
      EXPECT_EQ(page.device_table[std::min(n, counters::most_devices) - 1].memory,
                99 + std::min(n, counters::most_devices));
    }
  }
  EXPECT_EQ(page.version, status_page::current_version);
  EXPECT_EQ(page.process, ::getpid());
  EXPECT_EQ(page.started, start_of_process(::getpid()));
  EXPECT_GT(page.started, 0U);
  EXPECT_GE(page.started, start_of_process(::getppid()));
  EXPECT_EQ(start_of_process(0), 0U);
  page.tell_devices(many.data(), 0);
}

}  // namespace
}  // namespace hpe::trace
