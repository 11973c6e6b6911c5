// Tests of the functions that programs compiled with --default-stream per-thread call.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "common.h"

namespace {

TEST(PerThread, StreamZeroIsTheThreadsOwn) {
  host_gate gate;
  ASSERT_CUDA(gate.put(nullptr));
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
  cudaError_t elsewhere = cudaErrorUnknown;
  unsigned long long id = 0;
  std::thread([&] {
    elsewhere = cudaStreamSynchronize(nullptr);
    EXPECT_CUDA(cudaStreamGetId(nullptr, &id));
  }).join();
  EXPECT_EQ(elsewhere, cudaSuccess);
  unsigned long long own = 0;
  EXPECT_CUDA(cudaStreamGetId(nullptr, &own));
  EXPECT_NE(own, id);
  gate.open();
  EXPECT_CUDA(cudaStreamSynchronize(nullptr));
  EXPECT_EQ(cudaStreamQuery(cudaStreamLegacy), cudaSuccess);
}

TEST(PerThread, ItWaitsForTheLegacyStream) {
  host_gate gate;
  ASSERT_CUDA(gate.put(cudaStreamLegacy));
  const on_device<int> value(1);
  ASSERT_CUDA(cudaMemsetAsync(value.data(), 0, sizeof(int), nullptr));
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  gate.open();
  EXPECT_CUDA(cudaStreamSynchronize(nullptr));
}

TEST(PerThread, CanBeCaptured) {
  cudaGraph_t graph = nullptr;
  const on_device<int> value(1);
  ASSERT_CUDA(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal));
  EXPECT_CUDA(cudaMemsetAsync(value.data(), 0, sizeof(int), nullptr));
  ASSERT_CUDA(cudaStreamEndCapture(nullptr, &graph));
  std::size_t nodes = 0;
  EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 1U);
  EXPECT_CUDA(cudaGraphDestroy(graph));
}

}  // namespace
