#include <cstring>

#include "common.h"

namespace {

TEST(StreamCalls, ChecksArgumentsAndHandles) {
  cudaStream_t stream = nullptr;
  EXPECT_FAILS(cudaStreamCreate(nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaStreamCreateWithFlags(&stream, 6), cudaErrorInvalidValue);
  ASSERT_CUDA(cudaStreamCreate(&stream));
  ASSERT_CUDA(cudaStreamDestroy(stream));
  unsigned flags = 0;
  EXPECT_FAILS(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_FAILS(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
  EXPECT_FAILS(cudaStreamGetFlags(stream, &flags), cudaErrorInvalidResourceHandle);
  EXPECT_FAILS(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  EXPECT_FAILS(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_FAILS(cudaLaunchHostFunc(nullptr, nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaStreamAddCallback(nullptr, nullptr, nullptr, 0), cudaErrorInvalidValue);
}

TEST(StreamCalls, TellsTheFlagsAndPriorityOfAStream) {
  int least = -1;
  int greatest = 1;
  ASSERT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_LT(greatest, least);
  ASSERT_CUDA(cudaSetDevice(1));
  cudaStream_t stream = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 100));
  ASSERT_CUDA(cudaSetDevice(0));
  int priority = 0;
  unsigned flags = 0;
  int device = 0;
  unsigned long long id = 0;
  unsigned long long other = 0;
  EXPECT_CUDA(cudaStreamGetPriority(stream, &priority));
  EXPECT_CUDA(cudaStreamGetFlags(stream, &flags));
  EXPECT_CUDA(cudaStreamGetDevice(stream, &device));
  EXPECT_CUDA(cudaStreamGetId(stream, &id));
  EXPECT_CUDA(cudaStreamGetId(nullptr, &other));
  EXPECT_EQ(priority, greatest);
  EXPECT_EQ(flags, unsigned{cudaStreamNonBlocking});
  EXPECT_EQ(device, 1);
  EXPECT_NE(id, other);
  EXPECT_CUDA(cudaStreamDestroy(stream));
}

TEST(StreamCalls, KernelsKeepTheOrderOfTheLegacyStream) {
  constexpr int count = 1000;
  const on_device<int> values(count);
  const own_stream a;
  const own_stream b;
  host_gate gate;
  ASSERT_CUDA(cudaMemsetAsync(values.data(), 0, count * sizeof(int), a));
  ASSERT_CUDA(gate.put(a));
  ASSERT_CUDA(add_to(values.data(), count, 5, a));
  ASSERT_CUDA(double_all(values.data(), count, nullptr));  // runs after the work on `a`, although `a` waits
  ASSERT_CUDA(add_to(values.data(), count, 1, b));         // runs after the work on the legacy stream
  EXPECT_EQ(cudaStreamQuery(b), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  gate.open();
  ASSERT_CUDA(cudaStreamSynchronize(b));
  EXPECT_EQ(from_device(values.data(), count), std::vector<int>(count, 11));
  EXPECT_EQ(cudaStreamQuery(a), cudaSuccess);
}

TEST(StreamCalls, NonBlockingStreamsDoNotWaitForTheLegacyStream) {
  const on_device<int> values(1);
  const own_stream free(cudaStreamNonBlocking);
  host_gate gate;
  ASSERT_CUDA(cudaMemset(values.data(), 0, sizeof(int)));
  ASSERT_CUDA(gate.put(nullptr));
  ASSERT_CUDA(add_to(values.data(), 1, 3, free));
  EXPECT_CUDA(cudaStreamSynchronize(free));
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  gate.open();
  EXPECT_CUDA(cudaDeviceSynchronize());
}

TEST(StreamCalls, CallbacksRunInOrderAndMayNotCall) {
  struct seen {
    std::vector<cudaError_t> from_function;
    cudaError_t status = cudaErrorUnknown;
    cudaStream_t stream = nullptr;
  } told;
  const own_stream stream;
  ASSERT_CUDA(cudaLaunchHostFunc(
      stream,
      [](void* data) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        void* memory = nullptr;
        static_cast<seen*>(data)->from_function = {cudaStreamQuery(nullptr), cudaDeviceSynchronize(),
                                                   cudaMallocAsync(&memory, 4, nullptr)};
      },
      &told));
  ASSERT_CUDA(cudaStreamAddCallback(
      stream,
      [](cudaStream_t where, cudaError_t status, void* data) {
        static_cast<seen*>(data)->stream = where;
        static_cast<seen*>(data)->status = status;
      },
      &told, 0));
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(told.from_function[0], cudaErrorNotPermitted);
  EXPECT_EQ(told.from_function[1], cudaErrorNotPermitted);
  EXPECT_EQ(told.stream, stream);
  EXPECT_EQ(told.status, cudaSuccess);
}

TEST(StreamCalls, WorkOfDestroyedStreamsGoesOn) {
  const on_device<int> values(1);
  ASSERT_CUDA(cudaMemset(values.data(), 0, sizeof(int)));
  host_gate gate;
  cudaStream_t stream = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ASSERT_CUDA(gate.put(stream));
  ASSERT_CUDA(add_to(values.data(), 1, 9, stream));
  ASSERT_CUDA(cudaStreamDestroy(stream));
  gate.open();
  ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(from_device(values.data(), 1), std::vector{9});
}

TEST(StreamCalls, AfterAFaultCallbacksGetTheErrorAndWorkIsDropped) {
  struct seen {
    cudaError_t status = cudaSuccess;
    int functions = 0;
  } told;
  const own_stream stream(cudaStreamNonBlocking);
  host_gate gate;
  ASSERT_CUDA(gate.put(stream));
  ASSERT_CUDA(cudaLaunchKernel(kernel_far_away(), {1, 1, 1}, {1, 1, 1}, nullptr, 0, stream));
  ASSERT_CUDA(cudaLaunchHostFunc(
      stream, [](void* data) { ++static_cast<seen*>(data)->functions; }, &told));
  ASSERT_CUDA(cudaStreamAddCallback(
      stream, [](cudaStream_t, cudaError_t status, void* data) { static_cast<seen*>(data)->status = status; }, &told,
      0));
  gate.open();
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(told.status, cudaErrorIllegalAddress);
  EXPECT_EQ(told.functions, 0);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorIllegalAddress);
  EXPECT_CUDA(cudaDeviceReset());
  EXPECT_CUDA(cudaStreamSynchronize(nullptr));
}

TEST(StreamCalls, AttributesAreKept) {
  const own_stream a;
  const own_stream b;
  cudaStreamAttrValue value{};
  value.syncPolicy = cudaSyncPolicySpin;
  EXPECT_CUDA(cudaStreamSetAttribute(a, cudaStreamAttributeSynchronizationPolicy, &value));
  EXPECT_CUDA(cudaStreamCopyAttributes(b, a));
  value = {};
  EXPECT_CUDA(cudaStreamGetAttribute(b, cudaStreamAttributeSynchronizationPolicy, &value));
  EXPECT_EQ(value.syncPolicy, cudaSyncPolicySpin);
  EXPECT_FAILS(cudaStreamGetAttribute(b, cudaLaunchAttributeClusterDimension, &value), cudaErrorInvalidValue);
}

TEST(StreamCalls, EachAttributeOfAStreamIsKeptAloneAndOthersAreRefused) {
  const own_stream a;
  const own_stream b;
  const cudaStreamAttrID known[] = {cudaLaunchAttributeAccessPolicyWindow, cudaLaunchAttributeSynchronizationPolicy,
                                    cudaLaunchAttributeMemSyncDomainMap, cudaLaunchAttributeMemSyncDomain};
  cudaStreamAttrValue value{};
  for (const auto each : known) {
    std::memset(&value, 0xff, sizeof value);
    ASSERT_CUDA(cudaStreamGetAttribute(a, each, &value));
    EXPECT_EQ(value.syncPolicy, each == cudaLaunchAttributeSynchronizationPolicy ? cudaSyncPolicyAuto : 0);
    value = {};
    value.accessPolicyWindow.num_bytes = 1000U + static_cast<unsigned>(each);
    ASSERT_CUDA(cudaStreamSetAttribute(a, each, &value));
  }
  for (const auto each : known) {
    ASSERT_CUDA(cudaStreamGetAttribute(a, each, &value));
    EXPECT_EQ(value.accessPolicyWindow.num_bytes, 1000U + static_cast<unsigned>(each));
    ASSERT_CUDA(cudaStreamGetAttribute(b, each, &value));
    EXPECT_EQ(value.accessPolicyWindow.num_bytes, 0U);
  }
  ASSERT_CUDA(cudaStreamCopyAttributes(b, a));
  ASSERT_CUDA(cudaStreamCopyAttributes(b, b));
  for (const auto each : known) {
    ASSERT_CUDA(cudaStreamGetAttribute(b, each, &value));
    EXPECT_EQ(value.accessPolicyWindow.num_bytes, 1000U + static_cast<unsigned>(each));
  }
  EXPECT_FAILS(cudaStreamSetAttribute(a, cudaLaunchAttributePriority, &value), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaStreamSetAttribute(a, cudaLaunchAttributeCooperative, &value), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaStreamSetAttribute(a, cudaLaunchAttributeMemSyncDomain, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaStreamGetAttribute(a, cudaLaunchAttributeMemSyncDomain, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaStreamGetAttribute(a, cudaLaunchAttributeCooperative, &value), cudaErrorInvalidValue);
  for (const auto& [asked, expected] : std::vector<std::pair<int, int>>{{5, 0}, {0, 0}, {-1, -1}, {-5, -5}, {-6, -5}}) {
    cudaStream_t stream = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithPriority(&stream, 0, asked));
    ASSERT_CUDA(cudaStreamGetAttribute(stream, cudaLaunchAttributePriority, &value));
    EXPECT_EQ(value.priority, expected);
    EXPECT_CUDA(cudaStreamDestroy(stream));
  }
}

TEST(StreamCalls, MemoryIsAttachedWithAFlagThatCudaKnows) {
  void* memory = nullptr;
  ASSERT_CUDA(cudaMallocManaged(&memory, 64, cudaMemAttachHost));
  for (const unsigned flags : {0U, 1U, 2U, 3U, 4U, 5U, 8U}) {
    if (flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle) {
      EXPECT_CUDA(cudaStreamAttachMemAsync(nullptr, memory, 0, flags));
    } else {
      EXPECT_FAILS(cudaStreamAttachMemAsync(nullptr, memory, 0, flags), cudaErrorInvalidValue);
    }
  }
  EXPECT_FAILS(cudaStreamAttachMemAsync(nullptr, nullptr, 0, cudaMemAttachSingle), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFree(memory));
  int one = 0;
  EXPECT_FAILS(cudaStreamAddCallback(
                   nullptr, [](auto, auto, auto) {}, &one, 1),
               cudaErrorInvalidValue);
  EXPECT_CUDA(cudaDeviceGetStreamPriorityRange(nullptr, &one));
  EXPECT_EQ(one, -5);
  EXPECT_CUDA(cudaDeviceGetStreamPriorityRange(&one, nullptr));
  EXPECT_EQ(one, 0);
  const own_stream stream;
  EXPECT_FAILS(cudaStreamGetPriority(stream, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaStreamGetFlags(stream, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaStreamGetId(stream, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaStreamGetDevice(stream, nullptr), cudaErrorInvalidValue);
}

}  // namespace
