// Several threads queue random work on their own streams, on both devices, and touch the memory without waiting for the
// work. Each thread has a model of the expected contents on the host. HPE_TEST_SEED repeats the random choices of a
// run; HPE_STRESS_SECONDS is the duration of a run (default 2).
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common.h"
#include "tests/threads_told.h"

namespace {

using clock_type = std::chrono::steady_clock;

unsigned long number_from(const char* variable, unsigned long otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoul(text, nullptr, 0) : otherwise;
}

/// The state that all threads of a run share.
struct run {
  clock_type::time_point end;
  std::atomic<unsigned long> steps{0};
  std::atomic<bool> failed{false};
};

/// Memory that queued work and CPU code use, and its expected content.
struct array {
  explicit array(int values) : count(values), device(static_cast<std::size_t>(values)), host(values) {
    EXPECT_CUDA(cudaMemset(device.data(), 0, host.size() * sizeof(int)));
  }
  [[nodiscard]] int* data() const { return device.data(); }

  int count;
  on_device<int> device;
  std::vector<int> host;
};

class player {
 public:
  player(run& all, unsigned long seed, int device) : all_(all), random_(seed), device_(device) {}

  void play() {
    ASSERT_CUDA(cudaSetDevice(device_));
    array a(static_cast<int>(1 + below(300)));  // so small that its block also has arrays of other threads
    array b(static_cast<int>(70000 + below(200000)));
    array c(b.count);
    array counted(70000);  // only host functions use this array
    arrays_ = {&a, &b, &c};
    const own_stream first;
    const own_stream second(cudaStreamNonBlocking);
    streams_ = {first, second};
    ASSERT_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    while (!all_.failed && clock_type::now() < all_.end) {
      step(counted);
      ++all_.steps;
    }
    if (!all_.failed) compare_all();
    EXPECT_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(counted.data()[0], functions_);
    EXPECT_CUDA(cudaEventDestroy(event_));
  }

 private:
  unsigned long below(unsigned long bound) { return random_() % bound; }
  cudaStream_t stream() { return streams_[in_use_]; }

  void step(array& counted) {
    array& it = *arrays_[below(arrays_.size())];
    const int at = static_cast<int>(below(it.count));
    const int value = static_cast<int>(below(1000));
    switch (below(11)) {
      case 0:
      case 1: {
        good(add_to(it.data(), it.count, value, stream()));
        for (int& each : it.host) each = static_cast<int>(static_cast<unsigned>(each) + static_cast<unsigned>(value));
        break;
      }
      case 2: {
        good(double_all(it.data(), it.count, stream()));
        for (int& each : it.host) each = static_cast<int>(2U * static_cast<unsigned>(each));
        break;
      }
      case 3: {
        const auto bytes = (it.host.size() - at) * sizeof(int);
        good(cudaMemsetAsync(it.data() + at, value & 0xff, bytes, stream()));
        std::memset(it.host.data() + at, value & 0xff, bytes);
        break;
      }
      case 4: {
        array& from = *arrays_[1];
        array& to = *arrays_[2];
        const int first = static_cast<int>(below(from.count));
        const auto bytes = (from.host.size() - first) * sizeof(int);
        good(cudaMemcpyAsync(to.data() + first, from.data() + first, bytes, cudaMemcpyDeviceToDevice, stream()));
        std::memcpy(to.host.data() + first, from.host.data() + first, bytes);
        break;
      }
      case 5: {
        good(cudaMemcpyAsync(it.data() + at, &value, sizeof value, cudaMemcpyHostToDevice, stream()));
        it.host[at] = value;
        break;
      }
      case 6: {  // a host function, which touches memory that only host functions touch
        good(cudaLaunchHostFunc(
            stream(), [](void* p) { ++*static_cast<int*>(p); }, counted.data()));
        ++functions_;
        break;
      }
      case 7: {
        good(cudaEventRecord(event_, stream()));
        in_use_ = 1 - in_use_;
        good(cudaStreamWaitEvent(stream(), event_, 0));
        break;
      }
      case 8: {
        it.data()[at] = value;
        it.host[at] = value;
        break;
      }
      case 9: compare(it, at, 1 + below(100)); break;
      default: compare(it, at, 1); break;
    }
  }

  void good(cudaError_t status) {
    if (status == cudaSuccess) return;
    ADD_FAILURE() << cudaGetErrorName(status);
    all_.failed = true;
  }

  void compare(const array& it, int at, unsigned long how_many) {
    for (int i = at; i < it.count && how_many > 0; ++i, --how_many) {
      const int seen = it.data()[i];
      if (seen == it.host[i]) continue;
      ADD_FAILURE() << "cell " << i << " of " << it.count << " is " << seen << ", not " << it.host[i];
      all_.failed = true;
      return;
    }
  }

  void compare_all() {
    for (const array* each : arrays_) compare(*each, 0, each->count);
  }

  run& all_;
  std::mt19937_64 random_;
  const int device_;
  std::array<array*, 3> arrays_{};
  std::array<cudaStream_t, 2> streams_{};
  int in_use_ = 0;
  cudaEvent_t event_ = nullptr;
  int functions_ = 0;
};

TEST(TouchStress, SeesTheResultsOfQueuedWork) {
  const unsigned long seed = number_from("HPE_TEST_SEED", std::random_device{}());
  run all{clock_type::now() + std::chrono::seconds(number_from("HPE_STRESS_SECONDS", 2))};
  constexpr int count = 4;
  std::atomic<int> playing{count};
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      player(all, seed * 100 + t, t % 2).play();
      --playing;
    });
  }
  unsigned long seen = 0;
  for (auto last_step = clock_type::now(); playing != 0;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (all.steps != seen) {
      seen = all.steps;
      last_step = clock_type::now();
    } else if (clock_type::now() - last_step > std::chrono::minutes(1)) {
      std::fprintf(stderr, "no step for a minute, after %lu; HPE_TEST_SEED=%lu\n", seen, seed);
      tell_where_threads_are();
      std::abort();
    }
  }
  for (std::thread& each : threads) each.join();
  EXPECT_FALSE(all.failed) << "HPE_TEST_SEED=" << seed;
}

}  // namespace
