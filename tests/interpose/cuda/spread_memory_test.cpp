// Memory that lies on both of the stand-in's devices, and copies of it.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "interpose/cuda/spread/array_copies.h"
#include "tests/interpose/cuda/driver_under_test.h"

namespace {

using hpe::cuda_hooks::array_copies;
using hpe::cuda_hooks::dealt_memory;
using hpe::cuda_hooks::joined_gpus;
using hpe::cuda_hooks::program_lane;
using hpe::spread::home_run;
using hpe::spread::placement;

constexpr std::uint64_t mib = 1U << 20U, bytes = 60 * mib - 4096;

class SpreadMemory : public testing::Test {
 protected:
  void SetUp() override {
    stand_in::enter_device_0();
    cu_ = std::make_unique<hpe::device::cuda::driver>();
    gpus_ = std::make_unique<joined_gpus>(*cu_);
    ASSERT_EQ(gpus_->count(), 2U);
    gpus_->enter();
    memory_ = std::make_unique<dealt_memory>(*cu_, *gpus_);
    free_at_first_ = gpus_->all_memory().free;
  }
  void TearDown() override {
    memory_->free_all();
    EXPECT_EQ(gpus_->all_memory().free, free_at_first_);
  }

  dealt_memory::range& filled() {
    placement parts;
    parts.how = placement::kind::parts;
    parts.bounds = {0, 30 * mib, 60 * mib};
    CUdeviceptr made = 0;
    EXPECT_EQ(memory_->allocate(made, bytes, parts), CUDA_SUCCESS);
    values_.resize(bytes / 4);
    for (std::size_t n = 0; n < values_.size(); ++n) values_[n] = static_cast<unsigned>(n * 2654435761U);
    EXPECT_EQ(cuMemcpyHtoD(made, values_.data(), bytes), CUDA_SUCCESS);
    return *memory_->find(made);
  }
  [[nodiscard]] bool has_values(CUdeviceptr at) const {
    std::vector<unsigned> there(values_.size());
    EXPECT_EQ(cuMemcpyDtoH(there.data(), at, bytes), CUDA_SUCCESS);
    return there == values_;
  }
  static unsigned home_of(const dealt_memory::range& r, std::uint64_t offset) {
    return std::find_if(r.pieces.begin(), r.pieces.end(), [&](const auto& p) { return offset < p.offset + p.bytes; })
        ->gpu;
  }

  std::unique_ptr<hpe::device::cuda::driver> cu_;
  std::unique_ptr<joined_gpus> gpus_;
  std::unique_ptr<dealt_memory> memory_;
  std::vector<unsigned> values_;
  std::size_t free_at_first_ = 0;
};

TEST_F(SpreadMemory, IsFoundByEachAddress) {
  const dealt_memory::range& r = filled();
  EXPECT_EQ(memory_->find(r.base + bytes - 1), &r);
  EXPECT_EQ(memory_->find(r.base - 1), nullptr);
  EXPECT_EQ(memory_->find(r.base + r.extent), nullptr);
  EXPECT_EQ(home_of(r, 30 * mib - 1), 0U);
  EXPECT_EQ(home_of(r, 30 * mib), 1U);
}

TEST_F(SpreadMemory, MovesWithItsContents) {
  dealt_memory::range& r = filled();
  const std::uint64_t before = r.homes;
  std::vector<home_run> dealt;
  for (std::uint64_t at = 0; at < 60 * mib; at += 10 * mib)
    dealt.push_back({at, at + 10 * mib, static_cast<int>(at / (10 * mib) % 2)});
  ASSERT_EQ(memory_->move(r, dealt, true), CUDA_SUCCESS);
  for (std::uint64_t at = 0; at < 60 * mib; at += 2 * mib) EXPECT_EQ(home_of(r, at), at / (10 * mib) % 2) << at;
  EXPECT_NE(r.homes, before);
  EXPECT_TRUE(has_values(r.base));
  const std::vector<home_run> halves{{0, 30 * mib, 0}, {30 * mib, 60 * mib, 1}};
  ASSERT_EQ(memory_->move(r, halves, true), CUDA_SUCCESS);
  EXPECT_EQ(r.homes, before);
  EXPECT_TRUE(has_values(r.base));
}

TEST_F(SpreadMemory, AMoveForWhichThereIsNoMemoryLeavesTheContents) {
  dealt_memory::range& r = filled();
  CUdeviceptr other = 0;
  placement one;
  one.how = placement::kind::one;
  one.home = 1;
  ASSERT_EQ(memory_->allocate(other, 150 * mib, one), CUDA_SUCCESS);
  EXPECT_EQ(memory_->move(r, {{0, 60 * mib, 1}}, true), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(has_values(r.base));
  memory_->free(*memory_->find(other));
  ASSERT_EQ(memory_->move(r, {{0, 60 * mib, 1}}, true), CUDA_SUCCESS);
  EXPECT_TRUE(has_values(r.base));
}

TEST_F(SpreadMemory, TakesTheMemoryOfAnotherDevice) {
  placement one;
  one.how = placement::kind::one;
  CUdeviceptr made = 0;
  ASSERT_EQ(memory_->allocate(made, 256 * mib, one), CUDA_SUCCESS);
  EXPECT_EQ(home_of(*memory_->find(made), 0), 0U);
  EXPECT_EQ(home_of(*memory_->find(made), 255 * mib), 1U);
  CUdeviceptr none = 0;
  EXPECT_EQ(memory_->allocate(none, 256 * mib, one), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(memory_->allocate(none, ~std::uint64_t{0}, one), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(none, 0U);
}

TEST_F(SpreadMemory, CopiesHaveTheBytesOfTheLastWrite) {
  dealt_memory::range& r = filled();
  r.contents = 1;
  const auto lane = std::make_shared<program_lane>(*cu_, *gpus_, CU_STREAM_LEGACY);
  array_copies copies(*cu_, *gpus_);
  EXPECT_FALSE(copies.are_valid(r));
  for (unsigned gpu = 0; gpu < 2; ++gpu) {
    ASSERT_EQ(lane->fork(), CUDA_SUCCESS);
    EXPECT_NE(copies.bring(r, gpu, lane), r.base);
  }
  EXPECT_TRUE(copies.are_valid(r));
  ASSERT_EQ(lane->fork(), CUDA_SUCCESS);
  const CUdeviceptr there = copies.bring(r, 1, lane);
  ASSERT_EQ(gpus_->wait(), CUDA_SUCCESS);
  EXPECT_TRUE(has_values(there));
  values_[17] = 4;
  ASSERT_EQ(cuMemcpyHtoD(r.base, values_.data(), 4096), CUDA_SUCCESS);
  r.contents = 2;
  EXPECT_FALSE(copies.are_valid(r));
  ASSERT_EQ(lane->fork(), CUDA_SUCCESS);
  EXPECT_EQ(copies.bring(r, 1, lane), there);
  ASSERT_EQ(gpus_->wait(), CUDA_SUCCESS);
  EXPECT_TRUE(has_values(there));
  const unsigned freed = stand_in::calls("cuMemFree_v2");
  copies.forget(r);
  EXPECT_EQ(stand_in::calls("cuMemFree_v2"), freed + 2);
  EXPECT_FALSE(copies.forget_all());
}

}  // namespace
