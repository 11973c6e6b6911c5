#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "check.h"
#include "kernels.h"

namespace {

template <class T>
T* make(cudaError_t (*allocate)(void**, std::size_t), std::size_t bytes) {
  void* made = nullptr;
  EXPECT_CUDA(allocate(&made, bytes));
  return static_cast<T*>(made);
}

cudaMemoryType type_of(const void* pointer, int* device = nullptr) {
  cudaPointerAttributes about{};
  EXPECT_CUDA(cudaPointerGetAttributes(&about, pointer));
  if (device != nullptr) *device = about.device;
  return about.type;
}

TEST(Memory, OfDevicesIsKnownByItsAddresses) {
  EXPECT_CUDA(cudaSetDevice(1));
  auto* const p = make<char>(cudaMalloc, 1001);
  int device = -1;
  EXPECT_EQ(type_of(p, &device), cudaMemoryTypeDevice);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(type_of(p + 1000), cudaMemoryTypeDevice);
  EXPECT_EQ(type_of(p + 1001), cudaMemoryTypeUnregistered);
  EXPECT_CUDA(cudaFree(p));
  EXPECT_EQ(type_of(p), cudaMemoryTypeUnregistered);
}

TEST(Memory, OfNoBytesIsNothing) {
  int there = 0;
  void* p = &there;
  EXPECT_CUDA(cudaMalloc(&p, 0));
  EXPECT_EQ(p, nullptr);
  EXPECT_CUDA(cudaFree(nullptr));
  EXPECT_CUDA(cudaFreeHost(nullptr));
  EXPECT_FAILS(cudaMallocManaged(&p, 0, cudaMemAttachGlobal), cudaErrorInvalidValue);
}

TEST(Memory, ThatIsTooMuchIsRefused) {
  void* p = nullptr;
  EXPECT_FAILS(cudaMalloc(&p, std::size_t{1} << 45), cudaErrorMemoryAllocation);
  EXPECT_EQ(p, nullptr);
  EXPECT_FAILS(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
}

// The products of these sizes, and the sum of a width and its padding, wrap around to 0.
TEST(Memory, OfSizesBeyondTheAddressSpaceIsRefused) {
  void* p = nullptr;
  std::size_t pitch = 0;
  constexpr std::size_t large = std::size_t{1} << 32;
  EXPECT_FAILS(cudaMallocPitch(&p, &pitch, large, large), cudaErrorMemoryAllocation);
  EXPECT_FAILS(cudaMallocPitch(&p, &pitch, ~std::size_t{0}, 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(p, nullptr);
  cudaPitchedPtr solid{};
  EXPECT_FAILS(cudaMalloc3D(&solid, {large, large / 2, 2}), cudaErrorMemoryAllocation);
  EXPECT_EQ(solid.ptr, nullptr);
  char own = 0;
  EXPECT_FAILS(cudaHostRegister(&own, ~std::size_t{0}, cudaHostRegisterDefault), cudaErrorInvalidValue);
}

// The test cudart.oversubscribed runs this test with 16 MiB of device memory.
TEST(Memory, BeyondTheDeviceWaitsOnTheHost) {
  const char* const wanted = std::getenv("HPE_OVERSUBSCRIBE");
  if (wanted == nullptr || std::string_view(wanted) != "on") GTEST_SKIP() << "hpe run --oversubscribe is needed";
  constexpr std::size_t arrays = 8, count = std::size_t{1} << 20;
  std::size_t free = 0, total = 0;
  EXPECT_CUDA(cudaMemGetInfo(&free, &total));
  ASSERT_LT(total, arrays * count * sizeof(float)) << "HPE_DEVICE_MEMORY";
  std::vector<float*> data;
  std::vector<float> expected;
  for (std::size_t n = 0; n < arrays; ++n) {
    data.push_back(make<float>(cudaMalloc, count * sizeof(float)));
    expected.push_back(static_cast<float>(n));
    const std::vector<float> values(count, expected.back());
    EXPECT_CUDA(cudaMemcpy(data[n], values.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  }
  for (std::size_t n = 0; n < 2 * arrays; ++n) {
    const std::size_t a = n % arrays, b = (n + 1) % arrays, sum = (n + 3) % arrays;
    launch_add(data[a], data[b], data[sum], static_cast<int>(count), static_cast<int>(count / 256), 256);
    expected[sum] = expected[a] + expected[b];
  }
  EXPECT_CUDA(cudaDeviceSynchronize());
  std::vector<float> result(count);
  for (std::size_t n = 0; n < arrays; ++n) {
    EXPECT_CUDA(cudaMemcpy(result.data(), data[n], count * sizeof(float), cudaMemcpyDeviceToHost));
    EXPECT_EQ(result, std::vector<float>(count, expected[n])) << n;
    EXPECT_CUDA(cudaFree(data[n]));
  }
}

TEST(Memory, IsFreedOnlyByItsOwnKindOfFree) {
  auto* const device = make<char>(cudaMalloc, 100);
  auto* const host = make<char>(cudaMallocHost, 100);
  EXPECT_FAILS(cudaFree(host), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaFreeHost(device), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaFree(device + 1), cudaErrorInvalidValue);
  int ordinary = 0;
  EXPECT_FAILS(cudaFree(&ordinary), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFree(device));
  EXPECT_FAILS(cudaFree(device), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFreeHost(host));
}

TEST(Memory, OfTheHostIsSeenByKernels) {
  void* made = nullptr;
  ASSERT_CUDA(cudaHostAlloc(&made, 3 * 4 * 77, cudaHostAllocPortable));
  auto* const host = static_cast<float*>(made);
  unsigned flags = 0;
  EXPECT_CUDA(cudaHostGetFlags(&flags, host));
  EXPECT_NE(flags & cudaHostAllocPortable, 0U);
  void* device = nullptr;
  EXPECT_CUDA(cudaHostGetDevicePointer(&device, host, 0));
  EXPECT_EQ(type_of(host), cudaMemoryTypeHost);
  std::iota(host, host + 77, 1.0F);
  std::iota(host + 77, host + 154, 100.0F);
  std::fill_n(host + 154, 77, -1.0F);
  auto* const seen = static_cast<float*>(device);
  launch_add(seen, seen + 77, seen + 154, 77, 1, 96);
  EXPECT_CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 77; ++i) EXPECT_EQ(host[154 + i], 101.0F + 2.0F * static_cast<float>(i));
  EXPECT_CUDA(cudaFreeHost(host));
  EXPECT_FAILS(cudaHostAlloc(&made, 8, 0x80), cudaErrorInvalidValue);
}

TEST(Memory, ThatIsManagedIsUsedByBothSides) {
  void* made = nullptr;
  ASSERT_CUDA(cudaMallocManaged(&made, 3 * 4 * 1000, cudaMemAttachGlobal));
  auto* const p = static_cast<float*>(made);
  EXPECT_EQ(type_of(p), cudaMemoryTypeManaged);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2000; ++i) p[i] = static_cast<float>(i + round);
    cudaMemLocation there{};
    there.type = cudaMemLocationTypeDevice;
    there.id = round % 2;
    EXPECT_CUDA(cudaMemPrefetchAsync(p, 8000, there, 0, nullptr));
    EXPECT_CUDA(cudaSetDevice(round % 2));
    launch_add(p, p + 1000, p + 2000, 1000, 4, 256);
    EXPECT_CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(p[2000 + i], static_cast<float>(2 * i + 1000 + 2 * round)) << i;
  }
  cudaMemLocation nowhere{};
  nowhere.type = cudaMemLocationTypeDevice;
  nowhere.id = 9;
  EXPECT_FAILS(cudaMemPrefetchAsync(p, 8, nowhere, 0, nullptr), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaMemPrefetchAsync(p, 12001, {}, 0, nullptr), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemAdvise(p, 8, cudaMemAdviseSetReadMostly, {}));
  EXPECT_CUDA(cudaFree(p));
}

TEST(Memory, OfDevicesIsOpenToTheHost) {
  const on_device<int> memory(5000);
  for (int i = 0; i < 5000; ++i) memory.data()[i] = i;
  std::vector<int> back(5000, -1);
  EXPECT_CUDA(cudaMemcpy(back.data(), memory.data(), 20000, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(back[i], i);
}

TEST(Memory, WithPitchHasRoomForItsRows) {
  void* p = nullptr;
  std::size_t pitch = 0;
  ASSERT_CUDA(cudaMallocPitch(&p, &pitch, 700, 3));
  EXPECT_GE(pitch, 700U);
  EXPECT_EQ(pitch % 512, 0U);
  EXPECT_CUDA(cudaMemset(p, 1, pitch * 3));
  EXPECT_FAILS(cudaMemset(p, 1, pitch * 3 + 1), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFree(p));
  cudaPitchedPtr solid{};
  ASSERT_CUDA(cudaMalloc3D(&solid, {100, 5, 7}));
  EXPECT_EQ(solid.xsize, 100U);
  EXPECT_EQ(solid.ysize, 5U);
  EXPECT_CUDA(cudaMemset(solid.ptr, 1, solid.pitch * 35));
  EXPECT_CUDA(cudaFree(solid.ptr));
}

TEST(Memory, OfTheProgramIsRegistered) {
  std::vector<char> own(10000);
  EXPECT_FAILS(cudaHostUnregister(own.data()), cudaErrorHostMemoryNotRegistered);
  EXPECT_CUDA(cudaHostRegister(own.data(), own.size(), cudaHostRegisterDefault));
  EXPECT_EQ(type_of(own.data() + 5), cudaMemoryTypeHost);
  EXPECT_FAILS(cudaHostRegister(own.data() + 5, 10, cudaHostRegisterDefault), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_FAILS(cudaHostRegister(nullptr, 10, cudaHostRegisterDefault), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaFreeHost(own.data()), cudaErrorInvalidValue);
  const on_device<char> memory(own.size());
  EXPECT_CUDA(cudaMemset(memory.data(), 9, own.size()));
  EXPECT_CUDA(cudaMemcpyAsync(own.data(), memory.data(), own.size(), cudaMemcpyDeviceToHost, nullptr));
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(own[9999], 9);
  EXPECT_CUDA(cudaHostUnregister(own.data()));
  EXPECT_EQ(type_of(own.data()), cudaMemoryTypeUnregistered);
}

TEST(Memory, OfTheProgramIsSeenByKernelsWhereCudaSays) {
  for (const int count : {1, 1000, 300'000}) {
    std::vector<float> own(3 * count + 8);
    std::vector<float> neighbour(own.size(), 3.0F);
    float* const p = own.data() + 3;
    std::iota(p, p + 2 * count, 5.0F);
    EXPECT_CUDA(cudaHostRegister(p, 3 * count * sizeof(float), cudaHostRegisterMapped));
    void* device = nullptr;
    ASSERT_CUDA(cudaHostGetDevicePointer(&device, p, 0));
    EXPECT_NE(device, p);
    void* within = nullptr;
    EXPECT_CUDA(cudaHostGetDevicePointer(&within, p + 1, 0));
    EXPECT_EQ(within, static_cast<float*>(device) + 1);
    EXPECT_EQ(p[2 * count - 1], 4.0F + static_cast<float>(2 * count));
    p[0] = 77.0F;  // at the program's own address, after its pages were replaced
    auto* const seen = static_cast<float*>(device);
    launch_add(seen, seen + count, seen + 2 * count, count, (count + 255) / 256, 256);
    EXPECT_CUDA(cudaDeviceSynchronize());
    const auto right = [&](int i) {
      return (i == 0 ? 77.0F : 5.0F + static_cast<float>(i)) + 5.0F + static_cast<float>(count + i);
    };
    for (int i = 0; i < count; ++i) ASSERT_EQ(p[2 * count + i], right(i)) << i;
    EXPECT_CUDA(cudaHostUnregister(p));
    for (int i = 0; i < count; ++i) ASSERT_EQ(p[2 * count + i], right(i)) << i;
    EXPECT_EQ(std::count(neighbour.begin(), neighbour.end(), 3.0F), static_cast<long>(neighbour.size()));
    std::fill(own.begin(), own.end(), 1.0F);
  }
}

TEST(Memory, IsCounted) {
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t total = 0;
  EXPECT_CUDA(cudaMemGetInfo(&before, &total));
  EXPECT_LE(before, total);
  const on_device<char> memory(std::size_t{64} << 20);
  EXPECT_CUDA(cudaMemGetInfo(&after, &total));
  EXPECT_LE(after + (std::size_t{64} << 20), before);
}

TEST(Memory, IsGoneAfterAReset) {
  auto* const p = make<char>(cudaMalloc, 100);
  EXPECT_CUDA(cudaDeviceReset());
  EXPECT_EQ(type_of(p), cudaMemoryTypeUnregistered);
  EXPECT_FAILS(cudaMemset(p, 0, 100), cudaErrorInvalidValue);
}

}  // namespace
