// The memory that stays mapped after the program has freed it.
#include "interpose/gpu/oversubscribed/freed_memory.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace {

using hpe::cuda_hooks::freed_memory;
using hpe::cuda_hooks::program_object;

std::vector<CUdeviceptr> keep(freed_memory& all, CUdeviceptr base, std::size_t bytes, unsigned device = 0) {
  freed_memory::list one(1, program_object{base, bytes, device});
  std::vector<CUdeviceptr> given_back;
  for (const program_object& each : all.keep(std::move(one))) given_back.push_back(each.base);
  return given_back;
}

using addresses = std::vector<CUdeviceptr>;

TEST(FreedMemory, IsReusedForTheSameSizeOnTheSameDevice) {
  freed_memory all(100);
  EXPECT_EQ(keep(all, 1, 40), addresses());
  EXPECT_EQ(keep(all, 2, 40), addresses());
  EXPECT_EQ(keep(all, 3, 40, 1), addresses());
  EXPECT_EQ(all.bytes_on(0), 80U);
  EXPECT_EQ(all.take(30, 0), 0U);
  EXPECT_EQ(all.take(40, 0), 2U) << "the latest";
  EXPECT_EQ(all.take(40, 0), 1U);
  EXPECT_EQ(all.take(40, 0), 0U);
  EXPECT_EQ(all.bytes_on(1), 40U);
}

TEST(FreedMemory, ThatWasFreedFirstIsGivenBackFirst) {
  freed_memory all(100);
  EXPECT_EQ(keep(all, 1, 50), addresses());
  EXPECT_EQ(keep(all, 2, 50), addresses()) << "the limit is reached exactly";
  EXPECT_EQ(keep(all, 3, 1), addresses{1});
}

TEST(FreedMemory, AnAllocationBeyondTheLimitDoesNotDriveTheOthersOut) {
  freed_memory all(100);
  EXPECT_EQ(keep(all, 1, 60), addresses());
  EXPECT_EQ(keep(all, 2, 101), addresses{2});
  EXPECT_EQ(all.take(60, 0), 1U);
}

}  // namespace
