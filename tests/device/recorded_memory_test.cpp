#include "runtime/device/soft/softd/recorded_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/device/layout.h"

namespace hpe::device::soft {
namespace {

using ptx::recorded_use;

constexpr uvas_layout layout{device_test::layout_base, std::size_t{64} << 20, 1};

/// The record of a device, in this process.
class RecordedMemory : public ::testing::Test {
 protected:
  static constexpr std::uint64_t page = 4096;

  RecordedMemory() : reader_(layout, 1), memory_(layout, os::file_descriptor(::dup(reader_.file(0)))) {}

  // Returns the record of words of a use from the beginning of the UVAS on.
  [[nodiscard]] std::uint8_t* words(recorded_use use, std::size_t colour) const {
    const ptx::record_places places = record_places_of(layout);
    const std::uint64_t first = (layout.base - places.base) / ptx::record_places::word;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are numbers
    return reinterpret_cast<std::uint8_t*>(places.begin + places.words_of(use, colour) + first);
  }

  std::vector<recorded_stretch> collect() {
    memory_.collect(nullptr, {}, [](std::size_t count, const std::function<void(std::size_t)>& work) {
      for (std::size_t n = 0; n < count; ++n) work(n);
    });
    std::vector<recorded_stretch> result;
    reader_.take(0, [&](const recorded_stretch& each) { result.push_back(each); });
    return result;
  }

  recorded_reader reader_;
  recorded_memory memory_;
};

// Runs of equal numbers of any length, in both colours.
TEST_F(RecordedMemory, TellsTheStretchesOfAnyRecord) {
  std::mt19937 random(1);
  for (const unsigned longest : {3U, 20U, 200U, 9000U}) {
    std::vector<std::uint8_t> all;
    while (all.size() < 4 * page)
      all.insert(all.end(), 1 + random() % longest, static_cast<std::uint8_t>(random() % 3));
    all.resize(4 * page);
    std::vector<recorded_stretch> expected;
    for (std::uint64_t n = 0; n < all.size(); ++n) {
      if (all[n] == 0) continue;
      words(recorded_use::read, random() % 2)[n] = all[n];
      const std::uint64_t begin = layout.base + n * ptx::record_places::word;
      if (expected.empty() || expected.back().end != begin || expected.back().number != all[n])
        expected.push_back({begin, begin, recorded_use::read, all[n]});
      expected.back().end = begin + ptx::record_places::word;
    }
    const auto same = [](const recorded_stretch& a, const recorded_stretch& b) {
      return a.begin == b.begin && a.end == b.end && a.how == b.how && a.number == b.number;
    };
    const auto found = collect();
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end(), same)) << longest;
    EXPECT_TRUE(collect().empty()) << "collect() clears the record";
  }
}

}  // namespace
}  // namespace hpe::device::soft
