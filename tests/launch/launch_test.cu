// Tests hpe::launch and hpe::enqueue in a program that nvcc compiles.

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "hpe/cuda.hpp"

namespace {

using hpe::in;
using hpe::inout;
using hpe::out;
using numbers = hpe::array<std::uint32_t>;

constexpr std::size_t count = (std::size_t{3} << 20) + 17;  // more than one block of coherence, and odd
constexpr unsigned blocks = 96;
constexpr unsigned threads = 256;

__device__ std::size_t first_index() { return blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; }
__device__ std::size_t all_threads() { return gridDim.x * std::size_t{blockDim.x}; }

__global__ void add(std::uint32_t* result, const std::uint32_t* left, const std::uint32_t* right, std::size_t n) {
  for (std::size_t i = first_index(); i < n; i += all_threads()) result[i] = left[i] + right[i];
}

__global__ void increment(std::uint32_t* data, std::size_t n, std::uint32_t by) {
  for (std::size_t i = first_index(); i < n; i += all_threads()) data[i] += by;
}

// Each block writes the sum of its part's elements, which it adds in dynamic shared memory.
__global__ void sum_parts(std::uint64_t* sums, const std::uint32_t* data, std::size_t part) {
  extern __shared__ std::uint64_t partial[];
  std::uint64_t sum = 0;
  for (std::size_t i = threadIdx.x; i < part; i += blockDim.x) sum += data[blockIdx.x * part + i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned t = 1; t < blockDim.x; ++t) sum += partial[t];
  sums[blockIdx.x] = sum;
}

__device__ std::uint32_t variable;
__global__ void add_variable(std::uint32_t* data, std::size_t n) {
  for (std::size_t i = first_index(); i < n; i += all_threads()) data[i] += variable;
}

struct parts {
  std::uint32_t* first;
  std::uint32_t* second;
  std::size_t n;
};

__global__ void swap_parts(parts p) {
  for (std::size_t i = first_index(); i < p.n; i += all_threads()) {
    const std::uint32_t kept = p.first[i];
    p.first[i] = p.second[i];
    p.second[i] = kept;
  }
}

__global__ void crash(std::uint32_t* at) { *at = 1; }

bool has_gpus() { return hpe::device_info(0).kind == HPE_DEVICE_CUDA; }

void fill_randomly(const numbers& data) {
  static std::mt19937 next(std::random_device{}());
  for (std::uint32_t& value : data) value = next();
}

template <class Call>
hpe::error error_of(Call&& call) {
  try {
    call();
  } catch (const hpe::error& e) {
    return e;
  }
  return {HPE_SUCCESS, ""};
}

testing::AssertionResult has_words(const hpe::error& e, std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (std::string(e.what()).find(word) == std::string::npos)
      return testing::AssertionFailure() << '"' << e.what() << "\" lacks " << word;
  return testing::AssertionSuccess();
}

#define NEEDS_GPUS() \
  if (!has_gpus()) GTEST_SKIP() << "there are no GPUs"

TEST(SoftDevices, RunNoWorkOfThePrograms) {
  if (has_gpus()) GTEST_SKIP() << "the devices are GPUs";
  numbers a(count), b(count);
  fill_randomly(a);
  const std::vector<std::uint32_t> before(a.begin(), a.end());
  const auto refused = [&](const hpe::error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_NOT_SUPPORTED);
    EXPECT_TRUE(has_words(e, {"device 1", "soft", "hpeLaunch"}));
  };
  bool called = false;
  refused(error_of([&] {
    hpe::enqueue(
        1, [&](cudaStream_t) { called = true; }, out(a));
  }));
  refused(error_of([&] { hpe::launch_on(1, increment, blocks, threads, a.data(), count, 1); }));
  refused(error_of([&] { hpe::launch_on(1, swap_parts, blocks, threads, parts{a.data(), b.data(), count}); }));
  EXPECT_FALSE(called);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), a.begin()));
  hpe::synchronize();
}

TEST(Launch, FindsAccessesByTheParameters) {
  NEEDS_GPUS();
  const int last = hpe::device_count() - 1;
  numbers left(count), right(count), result(count, hpe::on_device(last));
  fill_randomly(left);
  fill_randomly(right);
  hpe::launch_on(last, add, blocks, threads, result.data(), left.data(), right.data(), count);
  hpe::launch_on(last, increment, dim3(blocks), dim3(threads), result.data(), count, 7);
  EXPECT_EQ(hpe::pointer_info(left.data()).on_host, 1);  // only read
  EXPECT_EQ(hpe::pointer_info(result.data()).on_host, 0);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(result[i], left[i] + right[i] + 7) << i;
}

// Skips a test unless it runs on GPUs, or on soft devices with hpe's CUDA runtime.
#define NEEDS_NAMES()                                                                               \
  const char* name_of_increment = nullptr;                                                          \
  if (cudaFuncGetName(&name_of_increment, reinterpret_cast<const void*>(increment)) != cudaSuccess) \
  GTEST_SKIP() << "the CUDA runtime names no kernels here"

TEST(LaunchOver, RunsKernelsOfTheProgramOnAllDevices) {
  NEEDS_NAMES();
  hpe::ndarray<std::uint32_t, 1> left({count}), right({count}), result({count});
  for (std::size_t i = 0; i < count; ++i) {
    left(i) = static_cast<std::uint32_t>(3 * i);
    right(i) = static_cast<std::uint32_t>(i * i);
  }
  const hpeSpread how = hpe::launch_over(add, blocks, threads, result, left, right, count);
  EXPECT_GE(how.parts, 1U) << how.reason;
  hpe::launch_over(increment, dim3(blocks), dim3(threads), result.data(), count, 7);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(result(i), static_cast<std::uint32_t>(3 * i + i * i + 7)) << i;

  constexpr std::size_t part = count / blocks;
  hpe::ndarray<std::uint64_t, 1> sums({blocks});
  hpe::launch_over({0}, sum_parts, hpe::cuda_shape{blocks, threads, threads * sizeof(std::uint64_t)}, sums, left, part);
  hpe::launch_over({}, sum_parts, hpe::cuda_shape{blocks, threads, threads * sizeof(std::uint64_t)}, sums, left, part);
  for (std::size_t b = 0; b < blocks; ++b)
    ASSERT_EQ(sums(b), std::accumulate(&left(b * part), &left(b * part) + part, std::uint64_t{0})) << b;

  hpe::launch_over(swap_parts, blocks, threads, parts{left.data(), right.data(), count});
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(right(i), static_cast<std::uint32_t>(3 * i)) << i;
}

// The program sets a variable of its own module, which hpe's copy of the kernel would not see.
TEST(LaunchOver, KernelsWithVariablesStayTheProgramsOwn) {
  NEEDS_NAMES();
  hpeKernel kernel = nullptr;
  const char* name = nullptr;
  ASSERT_EQ(cudaFuncGetName(&name, reinterpret_cast<const void*>(add_variable)), cudaSuccess);
  ASSERT_EQ(hpeKernelOfProgram(&kernel, reinterpret_cast<const void*>(add_variable), name), HPE_SUCCESS)
      << hpeGetLastErrorMessage();
  const char* reason = nullptr;
  ASSERT_EQ(hpeKernelGetObstacle(kernel, &reason), HPE_SUCCESS);
  ASSERT_NE(reason, nullptr);
  EXPECT_NE(std::string(reason).find("variables of its program"), std::string::npos) << reason;
  if (!has_gpus()) return;
  const std::uint32_t five = 5;
  ASSERT_EQ(cudaMemcpyToSymbol(variable, &five, sizeof five), cudaSuccess);
  hpe::ndarray<std::uint32_t, 1> data({count});
  const hpeSpread how = hpe::launch_over(add_variable, blocks, threads, data, count);
  EXPECT_EQ(how.parts, 1U);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data(i), 5U) << i;
}

TEST(Acquired, TheProgramsOwnStreamsUseTheBytes) {
  NEEDS_NAMES();
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  numbers data(count), twice(count), empty(0);
  for (std::uint32_t round = 0; round < 5; ++round) {
    std::iota(data.begin(), data.end(), round);
    hpe::launch_over({0}, increment, hpe::cuda_shape{blocks, threads}, data.data(), count, 5);
    hpe::acquired bytes({inout(data), out(twice), in(empty)});
    increment<<<blocks, threads, 0, stream>>>(data.data(), count, 2);
    add<<<blocks, threads, 0, stream>>>(twice.data(), data.data(), data.data(), count);
    bytes.release_after(stream);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(twice[i], 2 * (i + round + 7)) << i;
    hpe::launch_over({0}, increment, hpe::cuda_shape{blocks, threads}, data.data(), count, 1);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], i + round + 8) << i;
  }
  {
    const hpe::acquired bytes({inout(data)});
    increment<<<blocks, threads, 0, stream>>>(data.data(), count, 2);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
  EXPECT_EQ(data[3], 3 + 4 + 10U);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(error_of([&] { hpe::acquired({{data.data() + count, 4, HPE_IN}}); }).status(), HPE_ERROR_NOT_A_REGION);
}

TEST(Launch, OrdersWorkOfHostAndDevices) {
  NEEDS_GPUS();
  numbers data(count);
  std::iota(data.begin(), data.end(), 0U);
  for (unsigned round = 1; round <= 20; ++round) {
    hpe::launch_on(static_cast<int>(round) % hpe::device_count(), increment, blocks, threads, data.data(), count, 3,
                   inout(data));
    if (round % 5 == 0) data[count / 2] += 1000;
  }
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], i + 60 + (i == count / 2 ? 4000 : 0)) << i;
}

TEST(Launch, PartsOfAnAllocationMayBeNamed) {
  NEEDS_GPUS();
  numbers data(count);
  std::iota(data.begin(), data.end(), 0U);
  const std::size_t half = count / 2;
  hpe::launch(increment, blocks, threads, data.data(), half, 5, inout(data.subspan(0, half)));
  hpe::launch(increment, blocks, threads, data.data() + half, count - half, 6, inout(data.subspan(half, count - half)));
  hpe::launch(increment, blocks, threads, data.data(), std::size_t{0}, 6, inout(data.subspan(0, 0)));
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], i + (i < half ? 5 : 6)) << i;
}

TEST(Launch, TakesDynamicSharedMemory) {
  NEEDS_GPUS();
  constexpr std::size_t part = 5000;
  numbers data(blocks * part);
  fill_randomly(data);
  for (const std::size_t bytes : {threads * sizeof(std::uint64_t), std::size_t{100} << 10}) {
    hpe::array<std::uint64_t> sums(blocks);
    hpe::launch(sum_parts, hpe::cuda_shape{blocks, threads, bytes}, sums.data(), data.data(), part, out(sums),
                in(data));
    for (std::size_t b = 0; b < blocks; ++b) {
      const auto mine = data.subspan(b * part, part);
      ASSERT_EQ(sums[b], std::accumulate(mine.begin(), mine.end(), std::uint64_t{0})) << b;
    }
  }
}

TEST(Launch, PointersInAStructLeadAnywhere) {
  NEEDS_GPUS();
  numbers first(count), second(count);
  fill_randomly(first);
  fill_randomly(second);
  const std::vector<std::uint32_t> one(first.begin(), first.end()), two(second.begin(), second.end());
  hpe::launch(swap_parts, blocks, threads, parts{first.data(), second.data(), count});
  EXPECT_TRUE(std::equal(two.begin(), two.end(), first.begin()));
  EXPECT_TRUE(std::equal(one.begin(), one.end(), second.begin()));
}

TEST(Launch, OtherMemoryStaysTheProgramsOwn) {
  NEEDS_GPUS();
  numbers result(count), right(count);
  fill_randomly(right);
  std::uint32_t* own = nullptr;
  ASSERT_EQ(cudaMalloc(&own, count * sizeof *own), cudaSuccess);
  hpe::enqueue(0, [&](cudaStream_t s) { return cudaMemsetAsync(own, 1, count * sizeof *own, s); });
  hpe::synchronize();
  hpe::launch_on(0, add, blocks, threads, result.data(), own, right.data(), count);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(result[i], right[i] + 0x01010101U) << i;
  EXPECT_EQ(cudaFree(own), cudaSuccess);
}

TEST(Launch, ARefusedLaunchHarmsNothing) {
  NEEDS_GPUS();
  numbers data(count);
  fill_randomly(data);
  const std::vector<std::uint32_t> before(data.begin(), data.end());
  const auto e = error_of([&] { hpe::launch(increment, 1, 4096, data.data(), count, 1, out(data)); });
  EXPECT_EQ(e.status(), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(has_words(e, {"4096", "cudaError"}));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), data.begin()));
  const auto f = error_of([&] {
    hpe::launch(sum_parts, hpe::cuda_shape{1, 32, std::size_t{1} << 30}, nullptr, data.data(), count);
  });
  EXPECT_EQ(f.status(), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(has_words(f, {"1073741824", "cudaError"}));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  hpe::launch(increment, blocks, threads, data.data(), count, 1);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], before[i] + 1) << i;
}

TEST(Enqueue, OrderGoesOnFromTheEndOfTheWork) {
  NEEDS_GPUS();
  const int last = hpe::device_count() - 1;
  numbers data(count), copy(count, hpe::on_device(last));
  fill_randomly(data);
  const std::vector<std::uint32_t> before(data.begin(), data.end());
  hpe::enqueue(
      0,
      [&](cudaStream_t s) {
        for (int i = 0; i < 10; ++i) increment<<<blocks, threads, 0, s>>>(data.data(), count, 1);
      },
      inout(data));
  hpe::launch_on(last, increment, blocks, threads, data.data(), count, 10);
  const hpeAccess list[] = {in(data), out(copy)};
  hpe::enqueue(
      last,
      [&](cudaStream_t s) {
        return cudaMemcpyAsync(copy.data(), data.data(), count * sizeof data[0], cudaMemcpyDeviceToDevice, s);
      },
      std::span<const hpeAccess>(list));
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(copy[i], before[i] + 20) << i;
}

TEST(Enqueue, TheDeviceIsCurrentAndAnotherOneMayBeChosen) {
  NEEDS_GPUS();
  for (int d = 0; d < hpe::device_count(); ++d) {
    numbers data(count, hpe::on_device(d));
    int seen = -1;
    hpe::enqueue(
        d,
        [&](cudaStream_t s) {
          EXPECT_EQ(cudaGetDevice(&seen), cudaSuccess);
          increment<<<blocks, threads, 0, s>>>(data.data(), count, 3);
          cudaSetDevice(0);
        },
        inout(data));
    EXPECT_EQ(seen, d);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], 3U) << i;
  }
}

TEST(Enqueue, AnExceptionComesOutAndTheHostsDataStay) {
  NEEDS_GPUS();
  numbers written(count), read(count);
  fill_randomly(written);
  fill_randomly(read);
  const std::vector<std::uint32_t> before(written.begin(), written.end());
  hpe::launch(increment, 1, 1, read.data(), std::size_t{0}, 0, in(read));  // now both copies are valid
  const std::vector<std::uint32_t> both(read.begin(), read.end());
  EXPECT_THROW(hpe::enqueue(
                   0,
                   [&](cudaStream_t s) {
                     increment<<<blocks, threads, 0, s>>>(written.data(), count, 1);
                     increment<<<blocks, threads, 0, s>>>(read.data(), count, 1);
                     throw std::runtime_error("half-way");
                   },
                   inout(written), inout(read)),
               std::runtime_error);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), written.begin()));
  EXPECT_TRUE(std::equal(both.begin(), both.end(), read.begin()));
  // Devices also see the host's writes.
  hpe::launch(increment, blocks, threads, written.data(), count, 1);
  hpe::launch(increment, blocks, threads, read.data(), count, 1);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(written[i], before[i] + 1) << i;
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(read[i], both[i] + 1) << i;
  hpe::synchronize();
}

TEST(Enqueue, NumbersAndErrorsOfCudaAreTold) {
  NEEDS_GPUS();
  numbers data(count);
  fill_randomly(data);
  const std::uint32_t first = data[0];
  const auto number = error_of([&] {
    hpe::enqueue(
        0, [](cudaStream_t) { return 77; }, out(data));
  });
  EXPECT_EQ(number.status(), HPE_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(has_words(number, {"device 0", "77"}));
  const auto launched = error_of([&] {
    hpe::enqueue(
        0, [&](cudaStream_t s) { increment<<<1, 4096, 0, s>>>(data.data(), count, 1); }, out(data));
  });
  EXPECT_EQ(launched.status(), HPE_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(has_words(launched, {"cudaErrorInvalid"}));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(data[0], first);
}

TEST(Enqueue, FunctionsOfHpeFailInside) {
  NEEDS_GPUS();
  numbers data(count);
  hpeStatus status = HPE_SUCCESS;
  hpe::enqueue(
      0, [&](cudaStream_t) { status = hpeMemset(data.data(), 0, 4); }, inout(data));
  EXPECT_EQ(status, HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(hpeMemset(data.data(), 0, 4), HPE_SUCCESS);
}

// The GPUs are lost for the rest of the process, so this test needs its own process, or is the last one.
TEST(ZLost, AKernelThatFailsLosesTheDeviceAndNotTheHostsData) {
  NEEDS_GPUS();
  numbers data(count), touched(1);
  fill_randomly(data);
  const std::vector<std::uint32_t> before(data.begin(), data.end());
  touched[0] = 1;
  hpe::launch(crash, 1, 1, reinterpret_cast<std::uint32_t*>(16), inout(touched));
  EXPECT_EQ(hpeSynchronize(), HPE_ERROR_DEVICE_LOST);
  const auto e = error_of([&] { hpe::launch(increment, blocks, threads, data.data(), count, 1); });
  EXPECT_EQ(e.status(), HPE_ERROR_DEVICE_LOST);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), data.begin()));
}

}  // namespace
