// Allocations of up to 256 KiB share granules and blocks; nobody notices.

#include <gtest/gtest.h>

#include <barrier>
#include <thread>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"

namespace {

using hpe::out;

std::uint64_t memory_in_use(int device) {
  const hpeDeviceInfo info = hpe::device_info(device);
  return info.memory_total - info.memory_free;
}

TEST(small, AdviceForOneSaysNothingAboutItsNeighbours) {
  const hpe::array<std::uint32_t> written(25);
  const hpe::array<std::uint32_t> kept(25);
  hpe::launch(test_kernel().fill, hpe::grid(1), {written.data(), 25, 1}, out(written));
  hpe::launch(test_kernel().fill, hpe::grid(1), {kept.data(), 25, 1}, out(kept));
  hpe::advise(written.data(), HPE_ADVISE_WRITE_ONLY);
  for (std::uint32_t& x : written.span()) x = 5;
  for (std::uint32_t i = 0; i < 25; ++i) ASSERT_EQ(kept[i], 1 + i);
}

TEST(small, AlignedApartAndCleared) {
  std::vector<hpe::array<std::uint8_t>> all;
  for (std::size_t size = 1; size < 3000; size += 37) {
    all.emplace_back(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back().data()) % 256, 0U);
    for (const std::uint8_t x : all.back().span()) ASSERT_EQ(x, 0);
    std::fill(all.back().begin(), all.back().end(), static_cast<std::uint8_t>(size));
  }
  for (const auto& a : all)
    for (const std::uint8_t x : a.span()) ASSERT_EQ(x, static_cast<std::uint8_t>(a.size()));
}

TEST(small, TakeOneGranuleTogetherAndGiveItBack) {
  const std::uint64_t before = memory_in_use(0);
  {
    std::vector<hpe::array<std::uint32_t>> all;
    for (int i = 0; i < 100; ++i) all.emplace_back(60);
    EXPECT_LE(memory_in_use(0), before + hpe::granularity());
  }
  EXPECT_EQ(memory_in_use(0), before);
}

TEST(small, ThreadsThatAllocateAtOnceLeaveNothingBehind) {
  constexpr int threads = 8;
  const std::uint64_t before = memory_in_use(1);
  for (int round = 0; round < 20; ++round) {
    std::barrier together(threads);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&] {
        together.arrive_and_wait();
        const hpe::array<std::uint32_t> a(50, hpe::on_device(1));
        together.arrive_and_wait();
      });
    for (std::thread& t : all) t.join();
    ASSERT_EQ(memory_in_use(1), before);
  }
}

}  // namespace
