// Tests advice about managed memory, and queries that return the advice.
#include <cuda_runtime_api.h>

#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "check.h"

namespace {

constexpr std::size_t page = 4096;
constexpr cudaMemLocation host{cudaMemLocationTypeHost, 0};
constexpr cudaMemLocation device(int number) { return {cudaMemLocationTypeDevice, number}; }

class Managed : public testing::Test {
 protected:
  void SetUp() override { ASSERT_CUDA(cudaMallocManaged(reinterpret_cast<void**>(&bytes_), 10 * page)); }
  void TearDown() override { EXPECT_CUDA(cudaFree(bytes_)); }

  int ask(cudaMemRangeAttribute attribute, std::size_t first_page, std::size_t pages) {
    int value = 12345;
    EXPECT_CUDA(cudaMemRangeGetAttribute(&value, sizeof value, attribute, bytes_ + first_page * page, pages * page));
    return value;
  }

  char* bytes_ = nullptr;
};

TEST_F(Managed, TellsTheAdviceThatHoldsForAWholeRange) {
  EXPECT_EQ(ask(cudaMemRangeAttributeReadMostly, 0, 10), 0);
  EXPECT_EQ(ask(cudaMemRangeAttributePreferredLocation, 0, 10), cudaInvalidDeviceId);
  ASSERT_CUDA(cudaMemAdvise(bytes_ + 2 * page + 1, 3 * page, cudaMemAdviseSetReadMostly, host));  // pages 2 to 5
  EXPECT_EQ(ask(cudaMemRangeAttributeReadMostly, 2, 4), 1);
  EXPECT_EQ(ask(cudaMemRangeAttributeReadMostly, 1, 4), 0);
  EXPECT_EQ(ask(cudaMemRangeAttributeReadMostly, 3, 4), 0);
  ASSERT_CUDA(cudaMemAdvise(bytes_ + 3 * page, page, cudaMemAdviseUnsetReadMostly, host));
  EXPECT_EQ(ask(cudaMemRangeAttributeReadMostly, 2, 4), 0);
  EXPECT_EQ(ask(cudaMemRangeAttributeReadMostly, 4, 2), 1);

  ASSERT_CUDA(cudaMemAdvise(bytes_, 5 * page, cudaMemAdviseSetPreferredLocation, device(1)));
  ASSERT_CUDA(cudaMemAdvise(bytes_ + 5 * page, 5 * page, cudaMemAdviseSetPreferredLocation, host));
  EXPECT_EQ(ask(cudaMemRangeAttributePreferredLocation, 0, 5), 1);
  EXPECT_EQ(ask(cudaMemRangeAttributePreferredLocation, 5, 5), cudaCpuDeviceId);
  EXPECT_EQ(ask(cudaMemRangeAttributePreferredLocation, 0, 10), cudaInvalidDeviceId);
  EXPECT_EQ(ask(cudaMemRangeAttributePreferredLocationType, 0, 5), cudaMemLocationTypeDevice);
  EXPECT_EQ(ask(cudaMemRangeAttributePreferredLocationId, 0, 5), 1);
  EXPECT_EQ(ask(cudaMemRangeAttributePreferredLocationType, 5, 5), cudaMemLocationTypeHost);
  EXPECT_EQ(ask(cudaMemRangeAttributePreferredLocationType, 0, 10), cudaMemLocationTypeInvalid);
  ASSERT_CUDA(cudaMemAdvise(bytes_, 10 * page, cudaMemAdviseUnsetPreferredLocation, host));
  EXPECT_EQ(ask(cudaMemRangeAttributePreferredLocation, 0, 5), cudaInvalidDeviceId);
}

// Graphs have no nodes for prefetches.
TEST_F(Managed, PrefetchesAreNotCaptured) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamCreate(&stream));
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  EXPECT_FAILS(cudaMemPrefetchAsync(bytes_, page, device(1), 0, stream), cudaErrorStreamCaptureUnsupported);
  EXPECT_FAILS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  ASSERT_CUDA(cudaStreamDestroy(stream));
}

TEST_F(Managed, TellsWhoAccessesAndWhereItWasPrefetched) {
  ASSERT_CUDA(cudaMemAdvise(bytes_, 10 * page, cudaMemAdviseSetAccessedBy, device(1)));
  ASSERT_CUDA(cudaMemAdvise(bytes_, 5 * page, cudaMemAdviseSetAccessedBy, host));
  ASSERT_CUDA(cudaMemPrefetchAsync(bytes_, 5 * page, device(1), 0, nullptr));
  std::array<int, 3> by{};
  int last = 0;
  std::array<void*, 2> data{by.data(), &last};
  std::array<std::size_t, 2> sizes{sizeof by, sizeof last};
  std::array attributes{cudaMemRangeAttributeAccessedBy, cudaMemRangeAttributeLastPrefetchLocation};
  ASSERT_CUDA(cudaMemRangeGetAttributes(data.data(), sizes.data(), attributes.data(), 2, bytes_, 5 * page));
  EXPECT_EQ(by, (std::array{cudaCpuDeviceId, 1, cudaInvalidDeviceId}));
  EXPECT_EQ(last, 1);
  ASSERT_CUDA(cudaMemRangeGetAttributes(data.data(), sizes.data(), attributes.data(), 2, bytes_, 10 * page));
  EXPECT_EQ(by, (std::array{1, cudaInvalidDeviceId, cudaInvalidDeviceId}));
  EXPECT_EQ(last, cudaInvalidDeviceId);
  ASSERT_CUDA(cudaMemAdvise(bytes_, 10 * page, cudaMemAdviseUnsetAccessedBy, device(1)));
  ASSERT_CUDA(cudaMemRangeGetAttributes(data.data(), sizes.data(), attributes.data(), 1, bytes_, 10 * page));
  EXPECT_EQ(by[0], cudaInvalidDeviceId);
}

TEST_F(Managed, BatchesPrefetchEachRangeToItsPlace) {
  std::iota(bytes_, bytes_ + 10 * page, char{1});
  const std::vector<char> before(bytes_, bytes_ + 10 * page);
  std::array<void*, 3> ranges{bytes_, bytes_ + 2 * page, bytes_ + 4 * page};
  std::array<std::size_t, 3> sizes{page, 2 * page, 6 * page};
  std::array places{device(0), host};
  std::array<std::size_t, 2> firsts{0, 2};
  ASSERT_CUDA(cudaMemPrefetchBatchAsync(ranges.data(), sizes.data(), 3, places.data(), firsts.data(), 2, 0, nullptr));
  EXPECT_EQ(ask(cudaMemRangeAttributeLastPrefetchLocation, 0, 1), 0);
  EXPECT_EQ(ask(cudaMemRangeAttributeLastPrefetchLocation, 1, 1), cudaInvalidDeviceId);
  EXPECT_EQ(ask(cudaMemRangeAttributeLastPrefetchLocation, 2, 2), 0);
  EXPECT_EQ(ask(cudaMemRangeAttributeLastPrefetchLocation, 4, 6), cudaCpuDeviceId);
  ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(std::vector<char>(bytes_, bytes_ + 10 * page), before);
  ASSERT_CUDA(cudaMemDiscardBatchAsync(ranges.data(), sizes.data(), 1, 0, nullptr));
  ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(bytes_[page], before[page]);  // the byte after the discarded ones
  std::swap(places[0], places[1]);
  ASSERT_CUDA(
      cudaMemDiscardAndPrefetchBatchAsync(ranges.data(), sizes.data(), 3, places.data(), firsts.data(), 2, 0, nullptr));
  EXPECT_EQ(ask(cudaMemRangeAttributeLastPrefetchLocation, 0, 1), cudaCpuDeviceId);
  EXPECT_EQ(ask(cudaMemRangeAttributeLastPrefetchLocation, 4, 6), 0);
  EXPECT_EQ(ask(cudaMemRangeAttributeLastPrefetchLocationType, 0, 1), cudaMemLocationTypeHost);
  EXPECT_EQ(ask(cudaMemRangeAttributeLastPrefetchLocationType, 1, 1), cudaMemLocationTypeInvalid);
  EXPECT_EQ(ask(cudaMemRangeAttributeLastPrefetchLocationType, 4, 6), cudaMemLocationTypeDevice);
  EXPECT_EQ(ask(cudaMemRangeAttributeLastPrefetchLocationId, 0, 1), 0);
  ASSERT_CUDA(cudaMemPrefetchAsync(bytes_ + 9 * page, page, device(1), 0, nullptr));
  EXPECT_EQ(ask(cudaMemRangeAttributeLastPrefetchLocationId, 9, 1), 1);
  EXPECT_EQ(ask(cudaMemRangeAttributeLastPrefetchLocationType, 0, 10), cudaMemLocationTypeInvalid);
  firsts[0] = 1;
  EXPECT_FAILS(cudaMemPrefetchBatchAsync(ranges.data(), sizes.data(), 3, places.data(), firsts.data(), 2, 0, nullptr),
               cudaErrorInvalidValue);
  sizes[2] = 7 * page;
  EXPECT_FAILS(cudaMemDiscardBatchAsync(ranges.data(), sizes.data(), 3, 0, nullptr), cudaErrorInvalidValue);
}

TEST_F(Managed, RefusesOtherMemoryAndWrongQuestions) {
  int value = 0;
  void* other = nullptr;
  ASSERT_CUDA(cudaMalloc(&other, page));
  EXPECT_FAILS(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeReadMostly, other, page),
               cudaErrorInvalidValue);
  ASSERT_CUDA(cudaFree(other));
  EXPECT_FAILS(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeReadMostly, bytes_, 11 * page),
               cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemRangeGetAttribute(&value, 3, cudaMemRangeAttributeReadMostly, bytes_, page),
               cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemRangeGetAttribute(nullptr, 4, cudaMemRangeAttributeReadMostly, bytes_, page),
               cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemRangeGetAttribute(&value, 4, static_cast<cudaMemRangeAttribute>(99), bytes_, page),
               cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemAdvise(bytes_, page, cudaMemAdviseSetPreferredLocation, device(99)), cudaErrorInvalidDevice);
}

}  // namespace
