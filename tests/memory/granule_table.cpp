#include "runtime/memory/granule_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace {

using namespace hpe;
using memory::granule_entry;
using memory::granule_table;

// The table itself touches no memory of the UVAS, so this memory need not exist.
constexpr uvas_layout layout{0x7e9000000000, std::size_t{4} << 30, 5};

std::byte* granule(std::size_t index) { return reinterpret_cast<std::byte*>(layout.base) + index * granule_size; }

TEST(GranuleTable, KnowsNothingAtFirst) {
  granule_table table(layout);
  EXPECT_EQ(table.find(granule(0)), granule_entry{});
  EXPECT_EQ(table.find(granule(0) + layout.size() - 1), granule_entry{});
}

TEST(GranuleTable, FindsNothingOutside) {
  granule_table table(layout);
  table.assign(granule(0), layout.size() / granule_size, {1, 0});
  EXPECT_EQ(table.find(granule(0)).region, 1u);
  EXPECT_EQ(table.find(granule(0) + layout.size() - 1).region, 1u);
  EXPECT_EQ(table.find(granule(0) - 1).region, 0u);
  EXPECT_EQ(table.find(granule(0) + layout.size()).region, 0u);
  EXPECT_EQ(table.find(nullptr).region, 0u);
}

TEST(GranuleTable, RangesChangeAloneAndWhole) {
  granule_table table(layout);
  table.assign(granule(10), 4, {7, 1});
  table.set_home(granule(11), 2, memory::host_home);
  EXPECT_EQ(table.find(granule(10) - 1), granule_entry{});
  EXPECT_EQ(table.find(granule(10)), (granule_entry{7, 1}));
  EXPECT_EQ(table.find(granule(11)), (granule_entry{7, memory::host_home}));
  EXPECT_EQ(table.find(granule(13) - 1), (granule_entry{7, memory::host_home}));
  EXPECT_EQ(table.find(granule(14) - 1), (granule_entry{7, 1}));
  EXPECT_EQ(table.find(granule(14)), granule_entry{});
  table.clear(granule(10), 4);
  EXPECT_EQ(table.find(granule(12)), granule_entry{});
}

// Readers see only complete entries, and see all writes that the writer made before it published an entry.
TEST(GranuleTable, ReadersNeedNoLock) {
  granule_table table(layout);
  constexpr std::uint32_t rounds = 20000;
  std::vector<std::uint64_t> written_before(rounds + 1);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> torn{0};

  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        const granule_entry entry = table.find(granule(5) + 12345);
        if (entry.region == 0) continue;
        const bool whole = (entry.home == entry.region % 1000 || entry.home == 1000 + entry.region % 1000) &&
                           written_before[entry.region] == entry.region;
        if (!whole) ++torn;
      }
    });
  for (std::uint32_t region = 1; region <= rounds; ++region) {
    written_before[region] = region;
    const auto home = static_cast<std::uint16_t>(region % 1000);
    table.assign(granule(4), 3, {region, home});
    table.set_home(granule(4), 3, static_cast<std::uint16_t>(1000 + home));
    table.clear(granule(4), 3);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn, 0u);
}

TEST(GranuleTable, LookUpTakesNanoseconds) {
  granule_table table(layout);
  table.assign(granule(0), 4096, {3, 0});
  constexpr unsigned lookups = 4'000'000;
  std::uint64_t sum = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < lookups; ++i) sum += table.find(granule(i * 2654435761u % 4096)).region;
  const double ns =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / lookups;
  EXPECT_EQ(sum, 3ull * lookups);
  RecordProperty("nanoseconds_per_lookup", std::to_string(ns));
  std::printf("granule_table::find over 4096 granules: %.2f ns\n", ns);
  EXPECT_LT(ns, 1000) << "a look-up must need only a few instructions";
}

}  // namespace
