#include "common.h"

namespace {

constexpr int count = 500;

class CaptureCalls : public testing::Test {
 protected:
  void launch(cudaGraph_t graph, int times = 1) {
    cudaGraphExec_t exec = nullptr;
    ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < times; ++i) ASSERT_CUDA(cudaGraphLaunch(exec, stream_));
    ASSERT_CUDA(cudaStreamSynchronize(stream_));
    ASSERT_CUDA(cudaGraphExecDestroy(exec));
  }

  std::vector<int> values() { return from_device(values_.data(), count); }

  own_stream stream_;
  own_stream other_;
  on_device<int> values_{count};
};

TEST_F(CaptureCalls, KernelsCopiesAndMemsetsRunWhenTheGraphDoes) {
  const std::vector<int> start(count, 7);
  to_device(values_.data(), start);
  int* pinned = nullptr;
  ASSERT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&pinned), count * sizeof(int)));
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(cudaMemsetAsync(values_.data(), 0, count * sizeof(int) / 2, stream_));
  ASSERT_CUDA(add_to(values_.data(), count, 3, stream_));
  ASSERT_CUDA(double_all(values_.data(), count, stream_));
  ASSERT_CUDA(cudaMemcpyAsync(pinned, values_.data(), count * sizeof(int), cudaMemcpyDeviceToHost, stream_));
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(values(), start);
  launch(graph, 3);
  for (int i = 0; i < count; ++i) ASSERT_EQ(pinned[i], i < count / 2 ? 6 : ((7 + 3) * 2 + 3) * 4 + 6) << i;
  EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_CUDA(cudaFreeHost(pinned));
}

TEST_F(CaptureCalls, TheGraphNeedNotBeAskedFor) {
  to_device(values_.data(), std::vector<int>(count, 1));
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&graph, 0));
  ASSERT_CUDA(cudaStreamBeginCaptureToGraph(stream_, graph, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(add_to(values_.data(), count, 6, stream_));
  EXPECT_CUDA(cudaStreamEndCapture(stream_, nullptr));
  EXPECT_FAILS(cudaStreamEndCapture(stream_, nullptr), cudaErrorIllegalState);
  launch(graph);
  EXPECT_EQ(values(), std::vector<int>(count, 7));
  EXPECT_CUDA(cudaGraphDestroy(graph));
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(add_to(values_.data(), count, 6, stream_));
  EXPECT_CUDA(cudaStreamEndCapture(stream_, nullptr));  // the captured work never runs
  EXPECT_EQ(values(), std::vector<int>(count, 7));
}

TEST_F(CaptureCalls, StreamsForkAndJoin) {
  to_device(values_.data(), std::vector<int>(count, 1));
  cudaEvent_t fork = nullptr;
  cudaEvent_t join = nullptr;
  ASSERT_CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  ASSERT_CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(add_to(values_.data(), count, 1, stream_));
  ASSERT_CUDA(cudaEventRecord(fork, stream_));
  ASSERT_CUDA(cudaStreamWaitEvent(other_, fork, 0));
  ASSERT_CUDA(add_to(values_.data(), count / 2, 10, other_));
  ASSERT_CUDA(add_to(values_.data() + count / 2, count / 2, 20, stream_));
  ASSERT_CUDA(cudaEventRecord(join, other_));
  EXPECT_FAILS(cudaEventQuery(join), cudaErrorCapturedEvent);
  ASSERT_CUDA(cudaStreamWaitEvent(stream_, join, 0));
  ASSERT_CUDA(double_all(values_.data(), count, stream_));

  cudaStreamCaptureStatus status{};
  unsigned long long id = 0;
  cudaGraph_t into = nullptr;
  const cudaGraphNode_t* after = nullptr;
  std::size_t nodes = 0;
  ASSERT_CUDA(cudaStreamGetCaptureInfo(other_, &status, &id, &into, &after, nullptr, &nodes));
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_NE(id, 0U);
  ASSERT_EQ(nodes, 1U);
  cudaGraphNodeType type{};
  EXPECT_CUDA(cudaGraphNodeGetType(after[0], &type));
  EXPECT_EQ(type, cudaGraphNodeTypeKernel);

  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(graph, into);
  launch(graph);
  std::vector<int> expected(count, 44);
  std::fill_n(expected.begin(), count / 2, 24);
  EXPECT_EQ(values(), expected);
  EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_CUDA(cudaEventDestroy(fork));
  EXPECT_CUDA(cudaEventDestroy(join));
}

TEST_F(CaptureCalls, UnsafeCallsInvalidateIt) {
  void* memory = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  EXPECT_FAILS(cudaMalloc(&memory, 100), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(add_to(values_.data(), count, 1, stream_), cudaErrorStreamCaptureInvalidated);
  cudaStreamCaptureStatus status{};
  EXPECT_CUDA(cudaStreamIsCapturing(stream_, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
  EXPECT_FAILS(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_FAILS(cudaStreamEndCapture(stream_, &graph), cudaErrorIllegalState);

  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  EXPECT_CUDA(cudaMalloc(&memory, 100));
  EXPECT_CUDA(cudaFree(memory));
  ASSERT_CUDA(cudaStreamEndCapture(stream_, &graph));
  EXPECT_CUDA(cudaGraphDestroy(graph));

  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  EXPECT_CUDA(cudaMalloc(&memory, 100));
  EXPECT_CUDA(cudaFree(memory));
  ASSERT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  ASSERT_CUDA(cudaStreamEndCapture(stream_, &graph));
  EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(CaptureCalls, WaitingIsForbidden) {
  cudaGraph_t graph = nullptr;
  for (const auto call :
       {+[](cudaStream_t it) { return cudaStreamSynchronize(it); },
        +[](cudaStream_t it) { return cudaStreamQuery(it); }, +[](cudaStream_t) { return cudaDeviceSynchronize(); }}) {
    ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
    EXPECT_FAILS(call(stream_), cudaErrorStreamCaptureUnsupported);
    EXPECT_FAILS(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  }
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  EXPECT_EQ(add_to(values_.data(), count, 1, nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_FAILS(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_FAILS(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed), cudaErrorStreamCaptureUnsupported);
}

TEST_F(CaptureCalls, MemoryCanBeAllocatedInside) {
  int* inside = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(cudaMallocAsync(reinterpret_cast<void**>(&inside), count * sizeof(int), stream_));
  ASSERT_CUDA(cudaMemsetAsync(inside, 0, count * sizeof(int), stream_));
  ASSERT_CUDA(add_to(inside, count, 4, stream_));
  ASSERT_CUDA(cudaMemcpyAsync(values_.data(), inside, count * sizeof(int), cudaMemcpyDeviceToDevice, stream_));
  ASSERT_CUDA(cudaFreeAsync(inside, stream_));
  ASSERT_CUDA(cudaStreamEndCapture(stream_, &graph));
  std::uint64_t bytes = 0;
  EXPECT_CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &bytes));
  EXPECT_GE(bytes, count * sizeof(int));
  launch(graph, 2);
  EXPECT_EQ(values(), std::vector<int>(count, 4));
  EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &bytes));
  EXPECT_EQ(bytes, 0U);
}

TEST_F(CaptureCalls, GraphsAreLaunchedInside) {
  to_device(values_.data(), std::vector<int>(count, 1));
  cudaGraph_t inner = nullptr;
  cudaGraph_t outer = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(double_all(values_.data(), count, stream_));
  ASSERT_CUDA(cudaStreamEndCapture(stream_, &inner));
  ASSERT_CUDA(cudaGraphInstantiate(&exec, inner, 0));
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(cudaGraphLaunch(exec, stream_));
  ASSERT_CUDA(add_to(values_.data(), count, 1, stream_));
  ASSERT_CUDA(cudaGraphLaunch(exec, stream_));
  ASSERT_CUDA(cudaStreamEndCapture(stream_, &outer));
  launch(outer);
  EXPECT_EQ(values(), std::vector<int>(count, 6));
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaGraphDestroy(inner));
  EXPECT_CUDA(cudaGraphDestroy(outer));
}

}  // namespace
