// CPU code uses device pointers without waiting first. It must see the results of queued work, and its writes must come
// after that work. A gate in the stream delays the work, so that a touch that does not wait returns a wrong result.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "common.h"
#include "hpe/hpe.h"

namespace {

constexpr int count = 1 << 18;  // a separate region of several blocks
constexpr std::size_t bytes = count * sizeof(int);

/// Opens a gate after 20 ms, while the thread that made this object waits.
class opened_later {
 public:
  explicit opened_later(host_gate& gate)
      : thread_([&gate] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          gate.open();
        }) {}
  ~opened_later() { thread_.join(); }
  opened_later(const opened_later&) = delete;
  opened_later& operator=(const opened_later&) = delete;

 private:
  std::thread thread_;
};

class Touch : public testing::Test {
 protected:
  Touch() {
    EXPECT_CUDA(cudaMemset(p_.data(), 0, bytes));
    EXPECT_CUDA(cudaMemset(q_.data(), 0, bytes));
    at_ = static_cast<int>(random_.below(count));
  }

  random_bytes random_;
  on_device<int> p_{count};
  on_device<int> q_{count};
  int at_ = 0;
  own_stream stream_;
  own_stream other_{cudaStreamNonBlocking};
  host_gate gate_;
};

TEST_F(Touch, SeesAQueuedKernel) {
  ASSERT_CUDA(gate_.put(stream_));
  ASSERT_CUDA(add_to(p_.data(), count, 5, stream_));
  const opened_later later(gate_);
  EXPECT_EQ(p_.data()[at_], 5);
}

// Programs query this attribute before they touch managed memory while kernels run.
TEST_F(Touch, OfManagedMemoryIsCoherentWhileKernelsRun) {
  int concurrent = 0;
  ASSERT_CUDA(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
  EXPECT_EQ(concurrent, 1);
  int* managed = nullptr;
  int* other = nullptr;
  ASSERT_CUDA(cudaMallocManaged(reinterpret_cast<void**>(&managed), bytes));
  ASSERT_CUDA(cudaMallocManaged(reinterpret_cast<void**>(&other), bytes));
  int expected = 0;
  for (int round = 0; round < 20; ++round) {
    ASSERT_CUDA(add_to(managed, count, 1, stream_));
    ASSERT_CUDA(add_to(other, count, 2, other_));
    EXPECT_EQ(managed[at_], ++expected);
    managed[at_] = expected += 10;
    EXPECT_EQ(other[at_], 2 * (round + 1));
  }
  EXPECT_CUDA(cudaFree(managed));
  EXPECT_CUDA(cudaFree(other));
}

TEST_F(Touch, OfMemoryThatTheHostHasOpenSeesAQueuedKernel) {
  p_.data()[at_] = 7;            // now the view of p_ is open for writing
  EXPECT_EQ(q_.data()[at_], 0);  // now the view of q_ is open for reading
  ASSERT_CUDA(gate_.put(stream_));
  ASSERT_CUDA(add_to(p_.data(), count, 5, stream_));
  ASSERT_CUDA(add_to(q_.data(), count, 6, stream_));
  const opened_later later(gate_);
  EXPECT_EQ(q_.data()[at_], 6);
  EXPECT_EQ(p_.data()[at_], 12);
}

TEST_F(Touch, SeesCopiesAndMemsets) {
  ASSERT_CUDA(gate_.put(stream_));
  ASSERT_CUDA(cudaMemsetAsync(p_.data(), 1, bytes, stream_));
  ASSERT_CUDA(cudaMemcpyAsync(q_.data(), p_.data(), bytes, cudaMemcpyDeviceToDevice, stream_));
  const int five = 5;
  ASSERT_CUDA(cudaMemcpyAsync(p_.data() + 3, &five, sizeof five, cudaMemcpyHostToDevice, stream_));
  const opened_later later(gate_);
  EXPECT_EQ(q_.data()[at_], 0x01010101);
  EXPECT_EQ(p_.data()[3], 5);
  EXPECT_EQ(p_.data()[4], 0x01010101);
}

TEST_F(Touch, WritesAfterEarlierReaders) {
  to_device(p_.data(), std::vector<int>(count, 3));
  ASSERT_CUDA(gate_.put(stream_));
  ASSERT_CUDA(cudaMemcpyAsync(q_.data(), p_.data(), bytes, cudaMemcpyDeviceToDevice, stream_));
  {
    const opened_later later(gate_);
    p_.data()[at_] = 4;
  }
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  EXPECT_EQ(q_.data()[at_], 3);
  EXPECT_EQ(p_.data()[at_], 4);
}

TEST_F(Touch, ReadsDuringReadersAndTouchesMemoryThatNoWorkUses) {
  to_device(p_.data(), std::vector<int>(count, 3));
  const on_device<int> free(count);
  ASSERT_CUDA(cudaMemset(free.data(), 0, bytes));
  ASSERT_CUDA(gate_.put(stream_));
  ASSERT_CUDA(cudaMemcpyAsync(q_.data(), p_.data(), bytes, cudaMemcpyDeviceToDevice, stream_));
  EXPECT_EQ(p_.data()[at_], 3);  // does not wait, because the gate is still closed
  free.data()[at_] = 1;
  EXPECT_EQ(free.data()[at_], 1);
  gate_.open();
  EXPECT_EQ(q_.data()[at_], 3);
}

TEST_F(Touch, SeesWorkThatWaitsForAnEventOfAnotherStream) {
  cudaEvent_t event = nullptr;
  ASSERT_CUDA(cudaEventCreate(&event));
  ASSERT_CUDA(gate_.put(stream_));
  ASSERT_CUDA(add_to(p_.data(), count, 2, stream_));
  ASSERT_CUDA(cudaEventRecord(event, stream_));
  ASSERT_CUDA(cudaStreamWaitEvent(other_, event, 0));
  ASSERT_CUDA(double_all(p_.data(), count, other_));
  {
    const opened_later later(gate_);
    EXPECT_EQ(p_.data()[at_], 4);
  }
  EXPECT_CUDA(cudaEventDestroy(event));
}

TEST_F(Touch, SeesGraphs) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(other_, cudaStreamCaptureModeThreadLocal));
  ASSERT_CUDA(cudaMemsetAsync(p_.data(), 1, bytes, other_));
  ASSERT_CUDA(add_to(p_.data(), count, 1, other_));
  ASSERT_CUDA(cudaStreamEndCapture(other_, &graph));
  ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(p_.data()[at_], 0);  // captured work is not queued
  ASSERT_CUDA(gate_.put(stream_));
  ASSERT_CUDA(cudaGraphLaunch(exec, stream_));
  {
    const opened_later later(gate_);
    EXPECT_EQ(p_.data()[at_], 0x01010102);
  }
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaGraphDestroy(graph));
}

struct between {
  int* p;
  int seen;
};

// A touch in the function waits for the work before the function, but not for the kernel after it, which itself waits
// for the function.
TEST_F(Touch, InAHostFunctionIsBetweenItsNeighbours) {
  between what{p_.data() + at_, 0};
  const auto function = [](void* data) {
    auto& it = *static_cast<between*>(data);
    it.seen = *it.p;
    *it.p = 10;
  };
  ASSERT_CUDA(add_to(p_.data(), count, 5, stream_));
  ASSERT_CUDA(cudaLaunchHostFunc(stream_, function, &what));
  ASSERT_CUDA(double_all(p_.data(), count, stream_));
  ASSERT_CUDA(add_to(p_.data(), count, 1, stream_));
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  EXPECT_EQ(what.seen, 5);
  EXPECT_EQ(p_.data()[at_], 21);
  EXPECT_EQ(p_.data()[(at_ + 1) % count], 11);
}

TEST_F(Touch, InACallbackIsBetweenItsNeighbours) {
  between what{p_.data() + at_, 0};
  const auto function = [](cudaStream_t, cudaError_t, void* data) {
    auto& it = *static_cast<between*>(data);
    it.seen = *it.p;
  };
  ASSERT_CUDA(add_to(p_.data(), count, 5, stream_));
  ASSERT_CUDA(cudaStreamAddCallback(stream_, function, &what, 0));
  ASSERT_CUDA(double_all(p_.data(), count, stream_));
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  EXPECT_EQ(what.seen, 5);
}

// When the function has ended, hpe closes the view that the function has opened.
TEST_F(Touch, BehindAHostFunctionThatTouchedWaits) {
  between what{p_.data() + at_, 0};
  ASSERT_CUDA(cudaLaunchHostFunc(
      stream_,
      [](void* data) {
        auto& it = *static_cast<between*>(data);
        it.seen = *it.p;
      },
      &what));
  cudaEvent_t touched = nullptr;
  ASSERT_CUDA(cudaEventCreate(&touched));
  ASSERT_CUDA(cudaEventRecord(touched, stream_));
  ASSERT_CUDA(gate_.put(stream_));
  ASSERT_CUDA(add_to(p_.data(), count, 5, stream_));
  ASSERT_CUDA(cudaEventSynchronize(touched));
  {
    const opened_later later(gate_);
    EXPECT_EQ(p_.data()[at_], 5);
  }
  EXPECT_CUDA(cudaEventDestroy(touched));
}

TEST_F(Touch, HpesOwnCallsWaitToo) {
  std::vector<int> seen(count);
  ASSERT_CUDA(gate_.put(stream_));
  ASSERT_CUDA(add_to(p_.data(), count, 5, stream_));
  {
    const opened_later later(gate_);
    ASSERT_EQ(hpeMemcpy(seen.data(), p_.data(), bytes), HPE_SUCCESS) << hpeGetLastErrorMessage();
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 5), count);
}

TEST_F(Touch, OfSeveralThreadsSeesTheirOwnStreams) {
  constexpr int threads = 4;
  std::vector<std::thread> all;
  std::vector<int> wrong(threads);
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([t, &wrong] {
      cudaSetDevice(t % 2);
      const on_device<int> mine(count);
      const own_stream stream(t < 2 ? cudaStreamDefault : cudaStreamNonBlocking);
      cudaMemsetAsync(mine.data(), 0, bytes, stream);
      for (int round = 1; round <= 20; ++round) {
        add_to(mine.data(), count, 1, stream);
        if (mine.data()[(round * 7919 + t) % count] != round) ++wrong[t];
        mine.data()[5] = round;
      }
    });
  }
  for (std::thread& each : all) each.join();
  EXPECT_EQ(wrong, std::vector<int>(threads));
}

}  // namespace
