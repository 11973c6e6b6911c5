// Allocations of up to 256 KiB share granules and blocks without any visible effect.

#include <gtest/gtest.h>

#include <barrier>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/core/status.h"

namespace {

using hpe::out;

std::uint64_t memory_in_use(int device) {
  const hpeDeviceInfo info = hpe::device_info(device);
  return info.memory_total - info.memory_free;
}

std::string text_of(const void* p) {
  char text[40];
  std::snprintf(text, sizeof text, "%p", p);
  return text;
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

TEST(small, AreNamedInMessages) {
  const hpe::array<std::uint8_t> neighbour(100);
  const hpe::array<std::uint8_t> last(100);
  void* freed = nullptr;
  ASSERT_EQ(hpeMalloc(&freed, 100), HPE_SUCCESS);
  ASSERT_EQ(hpeFree(freed), HPE_SUCCESS);
  EXPECT_TRUE(fails(hpeFree(freed), HPE_ERROR_NOT_A_REGION,
                    {"0 bytes inside an allocation of 100 bytes", text_of(freed), "freed"}));
  EXPECT_TRUE(fails(hpeMemset(static_cast<std::uint8_t*>(freed) + 3, 0, 5), HPE_ERROR_NOT_A_REGION,
                    {"3 bytes inside an allocation of 100 bytes", text_of(freed), "freed"}));
  std::uint8_t* const past = neighbour.data() + 120;
  EXPECT_TRUE(fails(hpeMemset(past, 0, 5), HPE_ERROR_NOT_A_REGION,
                    {"20 bytes past the end of the allocation of 100 bytes", text_of(neighbour.data())}));
}

TEST(small, AndLargeOnesAreNamedWhileTheirFreeIsPending) {
  for (const std::size_t size : {std::size_t{1000}, std::size_t{4} << 20}) {
    void* p = nullptr;
    ASSERT_EQ(hpeMalloc(&p, size), HPE_SUCCESS);
    auto* const words = static_cast<std::uint32_t*>(p);
    hpe::launch(test_kernel().increment, hpe::grid(1), {words, size / 4, 1, 50000},
                hpe::inout(std::span(words, size / 4)));
    std::thread freeing([p] { EXPECT_EQ(hpeFree(p), HPE_SUCCESS); });
    hpeStatus status = HPE_SUCCESS;
    while (status == HPE_SUCCESS) status = hpeAdvise(p, HPE_ADVISE_DEFAULT);
    EXPECT_TRUE(fails(status, HPE_ERROR_NOT_A_REGION,
                      {text_of(p), "inside an allocation of " + std::to_string(size) + " bytes", "freed"}));
    freeing.join();
  }
}

}  // namespace
