#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "check.h"
#include "kernels.h"

namespace {

// Computes the sum of two vectors on a device, and checks the sum.
void check_sum(int count, const std::function<void(const float*, const float*, float*)>& launch) {
  random_bytes random;
  std::vector<float> a(count);
  std::vector<float> b(count);
  for (float& each : a) each = static_cast<float>(random.below(1 << 20));
  for (float& each : b) each = static_cast<float>(random.below(1 << 20));
  const on_device<float> device(std::size_t{3} * count);
  float* const p = device.data();
  EXPECT_CUDA(cudaMemcpy(p, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaMemcpy(p + count, b.data(), b.size() * 4, cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaMemset(p + 2 * count, 0xff, a.size() * 4));
  launch(p, p + count, p + 2 * count);
  std::vector<float> sum(count);
  EXPECT_CUDA(cudaMemcpy(sum.data(), p + 2 * count, sum.size() * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; ++i) ASSERT_EQ(sum[i], a[i] + b[i]) << i << ", seed " << random.seed();
}

TEST(Launches, ByTripleBrackets) {
  for (const int count : {1, 255, 256, 10'007}) {
    check_sum(count, [&](const float* a, const float* b, float* sum) {
      launch_add(a, b, sum, count, (count + 255) / 256, 256);
      EXPECT_CUDA(cudaGetLastError());
    });
  }
}

TEST(Launches, ByFunctionHandleAndConfiguration) {
  int count = 3001;
  cudaFunction_t function = nullptr;
  cudaKernel_t kernel = nullptr;
  ASSERT_CUDA(cudaGetFuncBySymbol(&function, kernel_add()));
  ASSERT_CUDA(cudaGetKernel(&kernel, kernel_add()));
  for (const void* handle : {kernel_add(), static_cast<const void*>(function), static_cast<const void*>(kernel)}) {
    check_sum(count, [&](const float* a, const float* b, float* sum) {
      void* arguments[] = {&a, &b, &sum, &count};
      cudaLaunchConfig_t configuration{};
      configuration.gridDim = 30;
      configuration.blockDim = 101;
      EXPECT_CUDA(cudaLaunchKernelExC(&configuration, handle, arguments));
    });
  }
}

TEST(Launches, OfManyThreadsOfTheProgram) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      EXPECT_CUDA(cudaSetDevice(t % 2));
      for (int round = 0; round < 10; ++round) {
        const int count = 500 + 100 * t + round;
        check_sum(count, [&](const float* a, const float* b, float* sum) { launch_add(a, b, sum, count, 8, 256); });
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

TEST(Launches, PassParametersOfAllSizes) {
  char letter = -3;
  double number = 1e10;
  packet p{-5, 12345.5, {'a', 'b', 'c', 'd', 'e'}};
  short small = -30000;
  const on_device<std::int64_t> out(8);
  std::int64_t* pointer = out.data();
  void* arguments[] = {&letter, &number, &p, &small, &pointer};
  ASSERT_CUDA(cudaLaunchKernel(kernel_parameters(), 3, 1, arguments, 0, nullptr));
  std::int64_t got[8] = {};
  EXPECT_CUDA(cudaMemcpy(got, out.data(), sizeof got, cudaMemcpyDeviceToHost));
  const std::int64_t expected[8] = {-3, 10'000'000'000, -5, 12345, 'a', 'e', -30000, 3001};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(got[i], expected[i]) << i;
}

TEST(Launches, TellTheirParameters) {
  std::size_t offset = 99;
  std::size_t size = 99;
  EXPECT_CUDA(cudaFuncGetParamInfo(kernel_parameters(), 2, &offset, &size));
  EXPECT_EQ(offset, 16U);
  EXPECT_EQ(size, sizeof(packet));
  EXPECT_CUDA(cudaFuncGetParamInfo(kernel_parameters(), 4, &offset, nullptr));
  EXPECT_EQ(offset, 48U);
  EXPECT_FAILS(cudaFuncGetParamInfo(kernel_parameters(), 5, &offset, &size), cudaErrorInvalidValue);
}

TEST(Launches, ReverseThroughSharedMemory) {
  const on_device<int> out(1000);
  int* argument = out.data();
  void* arguments[] = {&argument};
  ASSERT_CUDA(cudaLaunchKernel(kernel_shared(), 1, 1000, arguments, 4000, nullptr));
  std::vector<int> got(1000);
  EXPECT_CUDA(cudaMemcpy(got.data(), out.data(), 4000, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(got[i], 999 - i);
}

TEST(Launches, HaveMuchSharedMemoryOnlyOnceItIsAskedFor) {
  const on_device<int> out(32);
  int* argument = out.data();
  void* arguments[] = {&argument};
  EXPECT_FAILS(cudaLaunchKernel(kernel_shared(), 1, 32, arguments, 50'000, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaFuncSetAttribute(kernel_shared(), cudaFuncAttributeMaxDynamicSharedMemorySize, 300'000),
               cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFuncSetAttribute(kernel_shared(), cudaFuncAttributeMaxDynamicSharedMemorySize, 100'000));
  EXPECT_CUDA(cudaLaunchKernel(kernel_shared(), 1, 32, arguments, 50'000, nullptr));
  EXPECT_CUDA(cudaDeviceSynchronize());
}

TEST(Launches, OfImpossibleShapesAreRefused) {
  const auto launch = [](const void* kernel, dim3 grid, dim3 block) {
    int* nothing = nullptr;
    void* arguments[] = {&nothing};
    return cudaLaunchKernel(kernel, grid, block, arguments, 0, nullptr);
  };
  EXPECT_FAILS(launch(kernel_shared(), 0, 1), cudaErrorInvalidConfiguration);
  EXPECT_FAILS(launch(kernel_shared(), 1, 0), cudaErrorInvalidConfiguration);
  EXPECT_FAILS(launch(kernel_shared(), 1, 1025), cudaErrorInvalidConfiguration);
  EXPECT_FAILS(launch(kernel_shared(), 1, dim3(1, 1, 65)), cudaErrorInvalidConfiguration);
  EXPECT_FAILS(launch(kernel_shared(), dim3(1, 65536), 1), cudaErrorInvalidConfiguration);
  EXPECT_FAILS(launch(kernel_bounded(), 1, 129), cudaErrorLaunchOutOfResources);
  EXPECT_CUDA(launch(kernel_bounded(), 1, 128));
  int no_kernel = 0;
  EXPECT_FAILS(launch(&no_kernel, 1, 1), cudaErrorInvalidDeviceFunction);
  EXPECT_FAILS(cudaLaunchKernel(kernel_shared(), 1, 1, nullptr, 0, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaLaunchCooperativeKernel(kernel_bounded(), 1'000'000, 128, nullptr, 0, nullptr),
               cudaErrorCooperativeLaunchTooLarge);
}

TEST(Launches, ByConfigurationAreCooperativeToo) {
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = 4;
  configuration.blockDim = 32;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  EXPECT_CUDA(cudaLaunchKernelExC(&configuration, kernel_bounded(), nullptr));
  EXPECT_CUDA(cudaDeviceSynchronize());
  configuration.gridDim = 1'000'000;
  EXPECT_FAILS(cudaLaunchKernelExC(&configuration, kernel_bounded(), nullptr), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_FAILS(cudaLaunchKernelExC(nullptr, kernel_bounded(), nullptr), cudaErrorInvalidValue);
  configuration.attrs = nullptr;
  EXPECT_FAILS(cudaLaunchKernelExC(&configuration, kernel_bounded(), nullptr), cudaErrorInvalidValue);
}

TEST(Functions, TellTheirAttributes) {
  cudaFuncAttributes a{};
  ASSERT_CUDA(cudaFuncGetAttributes(&a, kernel_static_shared()));
  EXPECT_EQ(a.sharedSizeBytes, 4096U);
  EXPECT_EQ(a.maxThreadsPerBlock, 1024);
  EXPECT_EQ(a.ptxVersion, 75);
  EXPECT_EQ(a.maxDynamicSharedSizeBytes, 48 * 1024 - 4096);
  ASSERT_CUDA(cudaFuncGetAttributes(&a, kernel_bounded()));
  EXPECT_EQ(a.maxThreadsPerBlock, 128);
  EXPECT_EQ(a.sharedSizeBytes, 0U);
  int no_kernel = 0;
  EXPECT_FAILS(cudaFuncGetAttributes(&a, &no_kernel), cudaErrorInvalidDeviceFunction);
  const char* name = nullptr;
  EXPECT_CUDA(cudaFuncGetName(&name, kernel_bounded()));
  EXPECT_NE(std::string(name).find("bounded"), std::string::npos);
}

TEST(Functions, TellHowManyBlocksFit) {
  int blocks = -1;
  const auto ask = [&](const void* kernel, int threads, std::size_t shared) {
    EXPECT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared));
    return blocks;
  };
  EXPECT_EQ(ask(kernel_shared(), 256, 0), 8);
  EXPECT_EQ(ask(kernel_shared(), 1024, 0), 2);
  EXPECT_EQ(ask(kernel_shared(), 1, 0), 32);
  EXPECT_EQ(ask(kernel_shared(), 32, 100 * 1024), 2);
  EXPECT_EQ(ask(kernel_bounded(), 129, 0), 0);
  EXPECT_EQ(ask(kernel_static_shared(), 32, 227 * 1024), 0);
  EXPECT_FAILS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_shared(), 0, 0), cudaErrorInvalidValue);
  std::size_t room = 0;
  EXPECT_CUDA(cudaOccupancyAvailableDynamicSMemPerBlock(&room, kernel_shared(), 2, 128));
  EXPECT_EQ(room, 113U * 1024);
}

TEST(Libraries, AreLoadedFromText) {
  const char* const text = R"(
.version 7.0
.target sm_75
.address_size 64
.global .align 4 .u32 variable = 11;
.visible .entry twice(.param .u64 out) {
  .reg .b64 %a; .reg .b32 %v;
  ld.param.u64 %a, [out];
  ld.global.u32 %v, [variable];
  shl.b32 %v, %v, 1;
  st.global.u32 [%a], %v;
  ret;
})";
  cudaLibrary_t library = nullptr;
  ASSERT_CUDA(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
  cudaKernel_t kernel = nullptr;
  ASSERT_CUDA(cudaLibraryGetKernel(&kernel, library, "twice"));
  const on_device<int> out(1);
  int* argument = out.data();
  void* arguments[] = {&argument};
  EXPECT_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), 1, 1, arguments, 0, nullptr));
  int result = 0;
  EXPECT_CUDA(cudaMemcpy(&result, out.data(), sizeof result, cudaMemcpyDeviceToHost));
  EXPECT_EQ(result, 22);
  void* address = nullptr;
  std::size_t bytes = 0;
  EXPECT_CUDA(cudaLibraryGetGlobal(&address, &bytes, library, "variable"));
  EXPECT_EQ(bytes, 4U);
  EXPECT_EQ(*static_cast<int*>(address), 11);
  EXPECT_FAILS(cudaLibraryGetKernel(&kernel, library, "thrice"), cudaErrorSymbolNotFound);
  unsigned kernels = 0;
  ASSERT_CUDA(cudaLibraryGetKernelCount(&kernels, library));
  ASSERT_EQ(kernels, 1U);
  kernel = nullptr;
  ASSERT_CUDA(cudaLibraryEnumerateKernels(&kernel, 5, library));
  const char* name = nullptr;
  ASSERT_CUDA(cudaFuncGetName(&name, reinterpret_cast<const void*>(kernel)));
  EXPECT_STREQ(name, "twice");
  EXPECT_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), 1, 1, arguments, 0, nullptr));
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_FAILS(cudaLibraryEnumerateKernels(nullptr, 1, library), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaLibraryGetGlobal(&address, &bytes, library, "constant"), cudaErrorSymbolNotFound);
  EXPECT_CUDA(cudaLibraryUnload(library));
  EXPECT_FAILS(cudaLibraryUnload(library), cudaErrorInvalidResourceHandle);
  EXPECT_FAILS(
      cudaLibraryLoadData(&library, ".version 7.0\n.target sm_75\nnonsense", nullptr, nullptr, 0, nullptr, nullptr, 0),
      cudaErrorInvalidPtx);
  EXPECT_FAILS(cudaLibraryLoadFromFile(&library, "/no/such/file", nullptr, nullptr, 0, nullptr, nullptr, 0),
               cudaErrorFileNotFound);
}

TEST(Functions, TellEachParameter) {
  const struct {
    std::size_t offset, size;
  } expected[] = {{0, 1}, {8, 8}, {16, sizeof(packet)}, {16 + sizeof(packet), 2}, {24 + sizeof(packet), 8}};
  for (std::size_t i = 0; i < 5; ++i) {
    std::size_t offset = 99;
    std::size_t size = 99;
    ASSERT_CUDA(cudaFuncGetParamInfo(kernel_parameters(), i, &offset, &size));
    EXPECT_EQ(offset, expected[i].offset);
    EXPECT_EQ(size, expected[i].size);
    EXPECT_CUDA(cudaFuncGetParamInfo(kernel_parameters(), i, &offset, nullptr));
    EXPECT_FAILS(cudaFuncGetParamInfo(kernel_parameters(), i, nullptr, &size), cudaErrorInvalidValue);
  }
  std::size_t offset = 0;
  EXPECT_FAILS(cudaFuncGetParamInfo(kernel_parameters(), 5, &offset, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaFuncGetParamInfo(kernel_bounded(), 0, &offset, nullptr), cudaErrorInvalidValue);
}

TEST(Functions, TakeTheAttributesThatTheyCanHave) {
  const auto set = [](cudaFuncAttribute which, int value) {
    return cudaFuncSetAttribute(kernel_shared(), which, value);
  };
  cudaFuncAttributes a{};
  EXPECT_CUDA(set(cudaFuncAttributePreferredSharedMemoryCarveout, 25));
  EXPECT_CUDA(set(cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
  EXPECT_CUDA(cudaFuncGetAttributes(&a, kernel_shared()));
  EXPECT_EQ(a.preferredShmemCarveout, 25);
  EXPECT_EQ(a.maxDynamicSharedSizeBytes, 227 << 10);
  EXPECT_EQ(a.numRegs, 32);
  EXPECT_EQ(a.binaryVersion, 75);
  EXPECT_FAILS(set(cudaFuncAttributeMaxDynamicSharedMemorySize, (227 << 10) + 1), cudaErrorInvalidValue);
  EXPECT_FAILS(set(cudaFuncAttributeMaxDynamicSharedMemorySize, -1), cudaErrorInvalidValue);
  EXPECT_CUDA(set(cudaFuncAttributeMaxDynamicSharedMemorySize, 0));
  EXPECT_CUDA(cudaFuncGetAttributes(&a, kernel_shared()));
  EXPECT_EQ(a.maxDynamicSharedSizeBytes, 48 << 10);  // kernels may use 48 KiB without setting the attribute
  EXPECT_CUDA(set(cudaFuncAttributeMaxDynamicSharedMemorySize, 48 << 10));
  EXPECT_FAILS(set(static_cast<cudaFuncAttribute>(99), 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaFuncGetAttributes(nullptr, kernel_shared()), cudaErrorInvalidValue);
  for (int config = -1; config <= 4; ++config) {
    const cudaError_t expected = config < 0 || config > 3 ? cudaErrorInvalidValue : cudaSuccess;
    EXPECT_EQ(cudaFuncSetCacheConfig(kernel_shared(), static_cast<cudaFuncCache>(config)), expected);
    cudaGetLastError();
  }
  EXPECT_CUDA(cudaFuncSetSharedMemConfig(kernel_shared(), cudaSharedMemBankSizeDefault));
  int no_kernel = 0;
  EXPECT_FAILS(cudaFuncSetSharedMemConfig(&no_kernel, cudaSharedMemBankSizeDefault), cudaErrorInvalidDeviceFunction);
  EXPECT_FAILS(cudaFuncSetCacheConfig(&no_kernel, cudaFuncCachePreferL1), cudaErrorInvalidDeviceFunction);
  EXPECT_FAILS(cudaFuncGetName(nullptr, kernel_shared()), cudaErrorInvalidValue);
  cudaKernel_t handle = nullptr;
  cudaFunction_t function = nullptr;
  EXPECT_CUDA(cudaGetKernel(&handle, kernel_shared()));
  EXPECT_CUDA(cudaGetFuncBySymbol(&function, kernel_shared()));
  EXPECT_EQ(static_cast<void*>(handle), static_cast<void*>(function));
  EXPECT_FAILS(cudaGetKernel(nullptr, kernel_shared()), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGetFuncBySymbol(nullptr, kernel_shared()), cudaErrorInvalidValue);
}

TEST(Functions, TellHowManyBlocksFitForEachNumberOfThreadsAndBytes) {
  // The limits of a multiprocessor: 2048 threads in warps of 32; 228 KiB of shared memory, of which each block needs 1
  // KiB in addition to its own; 32 blocks.
  random_bytes random;
  SCOPED_TRACE(random.seed());
  for (int i = 0; i < 400; ++i) {
    const int threads = random.below(2) == 0
                            ? 32 * static_cast<int>(1 + random.below(32)) + static_cast<int>(random.below(3)) - 1
                            : 1 + static_cast<int>(random.below(1024));
    const std::size_t bytes =
        random.below(2) == 0 ? random.below(228 << 10) : (random.below(232) << 10) + random.below(3);
    int told = -1;
    ASSERT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&told, kernel_shared(), threads, bytes, 0));
    const int by_threads = 2048 / ((threads + 31) / 32 * 32);
    const int by_bytes = static_cast<int>((228 << 10) / (bytes + 1024));
    const int expected = threads > 1024 || bytes > (227 << 10) ? 0 : std::min({by_threads, by_bytes, 32});
    ASSERT_EQ(told, expected) << threads << " threads, " << bytes << " bytes";
    if (expected == 0 || threads > 1024) continue;
    std::size_t room = 0;
    const int most = std::min(by_threads, 32);
    const int blocks = 1 + static_cast<int>(random.below(static_cast<std::size_t>(most)));
    ASSERT_CUDA(cudaOccupancyAvailableDynamicSMemPerBlock(&room, kernel_shared(), blocks, threads));
    EXPECT_EQ(room, std::min<std::size_t>((228 << 10) / blocks - 1024, 227 << 10)) << blocks;
    EXPECT_FAILS(cudaOccupancyAvailableDynamicSMemPerBlock(&room, kernel_shared(), most + 1, threads),
                 cudaErrorInvalidValue);
  }
  std::size_t room = 0;
  EXPECT_CUDA(cudaOccupancyAvailableDynamicSMemPerBlock(&room, kernel_static_shared(), 1, 32));
  EXPECT_EQ(room, (227U << 10) - 4096);
  EXPECT_FAILS(cudaOccupancyAvailableDynamicSMemPerBlock(nullptr, kernel_shared(), 1, 32), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaOccupancyAvailableDynamicSMemPerBlock(&room, kernel_shared(), 0, 32), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaOccupancyAvailableDynamicSMemPerBlock(&room, kernel_shared(), 1, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, kernel_shared(), 32, 0), cudaErrorInvalidValue);
}

}  // namespace
