#include <chrono>

#include "common.h"

namespace {

TEST(EventCalls, ChecksArgumentsAndHandles) {
  cudaEvent_t event = nullptr;
  EXPECT_FAILS(cudaEventCreate(nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaEventCreateWithFlags(&event, 64), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue);
  ASSERT_CUDA(cudaEventCreate(&event));
  EXPECT_FAILS(cudaEventElapsedTime(nullptr, event, event), cudaErrorInvalidValue);
  float time = 0;
  EXPECT_FAILS(cudaEventElapsedTime(&time, event, event), cudaErrorInvalidResourceHandle);
  ASSERT_CUDA(cudaEventDestroy(event));
  EXPECT_FAILS(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
  EXPECT_FAILS(cudaEventRecord(event, nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_FAILS(cudaStreamWaitEvent(nullptr, event, 0), cudaErrorInvalidResourceHandle);
  EXPECT_FAILS(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
  EXPECT_FAILS(cudaEventSynchronize(nullptr), cudaErrorInvalidResourceHandle);
}

TEST(EventCalls, OrdersStreamsOfTwoDevices) {
  const on_device<int> values(1);
  cudaEvent_t event = nullptr;
  ASSERT_CUDA(cudaMemset(values.data(), 0, sizeof(int)));
  ASSERT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  host_gate gate;
  ASSERT_CUDA(gate.put(nullptr));
  ASSERT_CUDA(add_to(values.data(), 1, 20, nullptr));
  ASSERT_CUDA(cudaEventRecord(event, nullptr));
  ASSERT_CUDA(cudaSetDevice(1));
  EXPECT_FAILS(cudaEventRecord(event, nullptr), cudaErrorInvalidResourceHandle);  // the stream is of another device
  ASSERT_CUDA(cudaStreamWaitEvent(nullptr, event, 0));
  int copied = 0;
  int* pinned = nullptr;
  ASSERT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&pinned), sizeof(int)));
  ASSERT_CUDA(cudaMemcpyAsync(pinned, values.data(), sizeof(int), cudaMemcpyDefault, nullptr));
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  gate.open();
  ASSERT_CUDA(cudaDeviceSynchronize());
  copied = *pinned;
  EXPECT_EQ(copied, 20);
  EXPECT_CUDA(cudaFreeHost(pinned));
  ASSERT_CUDA(cudaSetDevice(0));
  EXPECT_CUDA(cudaEventDestroy(event));
}

TEST(EventCalls, TellsTheTimeOfWork) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  ASSERT_CUDA(cudaEventCreate(&begin));
  ASSERT_CUDA(cudaEventCreate(&end));
  const own_stream stream;
  ASSERT_CUDA(cudaEventRecord(begin, stream));
  ASSERT_CUDA(cudaLaunchHostFunc(
      stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
  ASSERT_CUDA(cudaEventRecord(end, stream));
  float time = 0;
  EXPECT_EQ(cudaEventQuery(end), cudaErrorNotReady);
  ASSERT_CUDA(cudaEventSynchronize(end));
  ASSERT_CUDA(cudaEventElapsedTime(&time, begin, end));
  EXPECT_GE(time, 19.9F);
  EXPECT_CUDA(cudaEventDestroy(begin));
  EXPECT_CUDA(cudaEventDestroy(end));
}

}  // namespace
