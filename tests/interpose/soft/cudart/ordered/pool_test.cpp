#include "common.h"

namespace {

constexpr int count = 4000;

template <class T = std::uint64_t>
T attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
  T value{};
  EXPECT_CUDA(cudaMemPoolGetAttribute(pool, which, &value));
  return value;
}

class own_pool {
 public:
  explicit own_pool(std::size_t max_size = 0) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 0};
    properties.maxSize = max_size;
    EXPECT_CUDA(cudaMemPoolCreate(&handle_, &properties));
    std::uint64_t everything = UINT64_MAX;
    EXPECT_CUDA(cudaMemPoolSetAttribute(handle_, cudaMemPoolAttrReleaseThreshold, &everything));
  }
  ~own_pool() { cudaMemPoolDestroy(handle_); }
  own_pool(const own_pool&) = delete;
  own_pool& operator=(const own_pool&) = delete;
  operator cudaMemPool_t() const { return handle_; }  // NOLINT(google-explicit-constructor): stands for its handle

 private:
  cudaMemPool_t handle_ = nullptr;
};

int* allocate(cudaMemPool_t from, std::size_t bytes, cudaStream_t stream) {
  void* made = nullptr;
  EXPECT_CUDA(cudaMallocFromPoolAsync(&made, bytes, from, stream));
  return static_cast<int*>(made);
}

TEST(Pool, MemoryIsForKernels) {
  const own_stream stream;
  void* made = nullptr;
  ASSERT_CUDA(cudaMallocAsync(&made, count * sizeof(int), stream));
  auto* const values = static_cast<int*>(made);
  ASSERT_CUDA(cudaMemsetAsync(values, 0, count * sizeof(int), stream));
  ASSERT_CUDA(add_to(values, count, 8, stream));
  std::vector<int> out(count);
  ASSERT_CUDA(cudaMemcpyAsync(out.data(), values, count * sizeof(int), cudaMemcpyDeviceToHost, stream));
  ASSERT_CUDA(cudaFreeAsync(values, stream));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(out, std::vector<int>(count, 8));
  EXPECT_FAILS(cudaFreeAsync(values, stream), cudaErrorInvalidValue);
}

TEST(Pool, FreedMemoryServesAgainInTheSameStreamAtOnce) {
  const own_pool pool;
  const own_stream stream;
  const own_stream other(cudaStreamNonBlocking);
  host_gate gate;
  ASSERT_CUDA(gate.put(stream));
  int* const first = allocate(pool, 1 << 20, stream);
  ASSERT_CUDA(cudaFreeAsync(first, stream));
  int* const elsewhere = allocate(pool, 1 << 20, other);
  EXPECT_NE(elsewhere, first);  // `other` cannot know yet that `first` is free: the gate holds up the free on `stream`
  int* const again = allocate(pool, 1 << 20, stream);
  EXPECT_EQ(again, first);
  ASSERT_CUDA(cudaFreeAsync(again, stream));
  gate.open();
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(allocate(pool, 1 << 20, other), first);  // now `stream` has reached the free
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), std::uint64_t{2} << 20);
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), std::uint64_t{2} << 20);
  EXPECT_CUDA(cudaFreeAsync(first, other));
  EXPECT_CUDA(cudaFree(elsewhere));  // cudaFree can free memory of pools, too
  EXPECT_CUDA(cudaStreamSynchronize(other));
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 0U);
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrUsedMemHigh), std::uint64_t{2} << 20);
}

TEST(Pool, GivesBackMemoryAboveItsThreshold) {
  const own_pool pool;
  const own_stream stream;
  int* const block = allocate(pool, 1 << 20, stream);
  ASSERT_CUDA(cudaFreeAsync(block, stream));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), std::uint64_t{1} << 20);
  ASSERT_CUDA(cudaMemPoolTrimTo(pool, 1 << 20));
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), std::uint64_t{1} << 20);
  std::uint64_t nothing = 0;
  ASSERT_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &nothing));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), 0U);
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrReservedMemHigh), std::uint64_t{1} << 20);
  ASSERT_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &nothing));
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrReservedMemHigh), 0U);
  std::uint64_t wrong = 5;
  EXPECT_FAILS(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &wrong), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &nothing), cudaErrorInvalidValue);
  int flag = 0;
  EXPECT_EQ(attribute<int>(pool, cudaMemPoolReuseAllowOpportunistic), 1);
  ASSERT_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &flag));
  EXPECT_EQ(attribute<int>(pool, cudaMemPoolReuseAllowOpportunistic), 0);
}

TEST(Pool, KeepsItsLimit) {
  const own_pool pool(std::size_t{1} << 20);
  const own_stream stream;
  int* const block = allocate(pool, 900 << 10, stream);
  void* more = nullptr;
  EXPECT_FAILS(cudaMallocFromPoolAsync(&more, 900 << 10, pool, stream), cudaErrorMemoryAllocation);
  ASSERT_CUDA(cudaFreeAsync(block, stream));
  EXPECT_CUDA(cudaMallocFromPoolAsync(&more, 200 << 10, pool, stream));  // succeeds after the other block is freed
  EXPECT_CUDA(cudaFreeAsync(more, stream));
}

TEST(Pool, DevicesHaveDefaultAndCurrentOnes) {
  cudaMemPool_t default_pool = nullptr;
  cudaMemPool_t current = nullptr;
  ASSERT_CUDA(cudaDeviceGetDefaultMemPool(&default_pool, 0));
  ASSERT_CUDA(cudaDeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, default_pool);
  const own_pool own;
  EXPECT_FAILS(cudaDeviceSetMemPool(1, own), cudaErrorInvalidValue);
  ASSERT_CUDA(cudaDeviceSetMemPool(0, own));
  void* block = nullptr;
  ASSERT_CUDA(cudaMallocAsync(&block, 100, nullptr));
  EXPECT_GT(attribute(own, cudaMemPoolAttrUsedMemCurrent), 0U);
  ASSERT_CUDA(cudaFreeAsync(block, nullptr));
  ASSERT_CUDA(cudaDeviceSetMemPool(0, default_pool));
  EXPECT_FAILS(cudaMemPoolDestroy(default_pool), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetMemPool(&current, 99), cudaErrorInvalidDevice);
}

TEST(Pool, PeersGetAccess) {
  const own_pool pool;
  cudaMemLocation other{cudaMemLocationTypeDevice, 1};
  cudaMemAccessFlags flags{};
  ASSERT_CUDA(cudaMemPoolGetAccess(&flags, pool, &other));
  EXPECT_EQ(flags, cudaMemAccessFlagsProtNone);
  int* const block = allocate(pool, count * sizeof(int), nullptr);
  ASSERT_CUDA(cudaMemset(block, 0, count * sizeof(int)));
  const cudaMemAccessDesc access{other, cudaMemAccessFlagsProtReadWrite};
  ASSERT_CUDA(cudaMemPoolSetAccess(pool, &access, 1));
  ASSERT_CUDA(cudaMemPoolGetAccess(&flags, pool, &other));
  EXPECT_EQ(flags, cudaMemAccessFlagsProtReadWrite);
  ASSERT_CUDA(cudaSetDevice(1));
  ASSERT_CUDA(add_to(block, count, 12, nullptr));
  ASSERT_CUDA(cudaDeviceSynchronize());
  ASSERT_CUDA(cudaSetDevice(0));
  EXPECT_EQ(from_device(block, count), std::vector<int>(count, 12));
  EXPECT_CUDA(cudaFreeAsync(block, nullptr));
}

TEST(Pool, OutlivesItsHandleWhileMemoryIsUsed) {
  int* block = nullptr;
  {
    const own_pool pool;
    block = allocate(pool, count * sizeof(int), nullptr);
  }
  ASSERT_CUDA(cudaMemset(block, 0, count * sizeof(int)));
  ASSERT_CUDA(add_to(block, count, 2, nullptr));
  EXPECT_EQ(from_device(block, count), std::vector<int>(count, 2));
  EXPECT_CUDA(cudaFreeAsync(block, nullptr));
  EXPECT_CUDA(cudaDeviceSynchronize());
}

TEST(Pool, TakesMemoryOfCudaMalloc) {
  void* block = nullptr;
  ASSERT_CUDA(cudaMalloc(&block, 100));
  EXPECT_CUDA(cudaFreeAsync(block, nullptr));
  EXPECT_FAILS(cudaFree(block), cudaErrorInvalidValue);
}

TEST(Pool, EachPropertyThatCannotBeIsRefusedAlone) {
  cudaMemPoolProps good{};
  good.allocType = cudaMemAllocationTypePinned;
  good.location = {cudaMemLocationTypeDevice, 1};
  cudaMemPool_t made = nullptr;
  const auto refused = [&](cudaError_t code, const auto& change) {
    cudaMemPoolProps wrong = good;
    change(wrong);
    EXPECT_FAILS(cudaMemPoolCreate(&made, &wrong), code);
  };
  refused(cudaErrorInvalidValue, [](auto& w) { w.allocType = cudaMemAllocationTypeInvalid; });
  refused(cudaErrorInvalidDevice, [](auto& w) { w.location.id = 2; });
  refused(cudaErrorInvalidDevice, [](auto& w) { w.location.id = -1; });
  refused(cudaErrorNotSupported, [](auto& w) { w.location.type = cudaMemLocationTypeHost; });
  refused(cudaErrorNotSupported, [](auto& w) { w.handleTypes = cudaMemHandleTypeWin32; });
  EXPECT_FAILS(cudaMemPoolCreate(nullptr, &good), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemPoolCreate(&made, nullptr), cudaErrorInvalidValue);
  ASSERT_CUDA(cudaMemPoolCreate(&made, &good));
  EXPECT_FAILS(cudaMemPoolGetAttribute(made, cudaMemPoolAttrUsedMemHigh, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemPoolSetAttribute(made, cudaMemPoolAttrUsedMemHigh, nullptr), cudaErrorInvalidValue);
  for (const auto flag : {cudaMemPoolReuseFollowEventDependencies, cudaMemPoolReuseAllowOpportunistic,
                          cudaMemPoolReuseAllowInternalDependencies}) {
    int both[2] = {0, 77};  // flags are ints, so the word after the flag must not change
    EXPECT_CUDA(cudaMemPoolSetAttribute(made, flag, both));
    both[0] = 5;
    EXPECT_CUDA(cudaMemPoolGetAttribute(made, flag, both));
    EXPECT_EQ(both[0], 0);
    EXPECT_EQ(both[1], 77);
  }
  std::uint64_t wide = std::uint64_t{3} << 40;
  EXPECT_CUDA(cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &wide));
  EXPECT_EQ(attribute(made, cudaMemPoolAttrReleaseThreshold), wide);
  void* block = nullptr;
  EXPECT_FAILS(cudaMallocFromPoolAsync(nullptr, 4, made, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMallocAsync(nullptr, 4, nullptr), cudaErrorInvalidValue);
  block = &wide;
  EXPECT_CUDA(cudaMallocFromPoolAsync(&block, 0, made, nullptr));
  EXPECT_EQ(block, nullptr);
  EXPECT_CUDA(cudaFreeAsync(nullptr, nullptr));
  EXPECT_CUDA(cudaMemPoolDestroy(made));
  EXPECT_FAILS(cudaMemPoolDestroy(made), cudaErrorInvalidValue);
}

TEST(Pool, OfALocationIsThatOfTheDevice) {
  for (int device = 0; device < 2; ++device) {
    cudaMemPool_t expected = nullptr;
    cudaMemPool_t told = nullptr;
    ASSERT_CUDA(cudaDeviceGetDefaultMemPool(&expected, device));
    cudaMemLocation location{cudaMemLocationTypeDevice, device};
    EXPECT_CUDA(cudaMemGetDefaultMemPool(&told, &location, cudaMemAllocationTypePinned));
    EXPECT_EQ(told, expected);
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = location;
    cudaMemPool_t own = nullptr;
    ASSERT_CUDA(cudaMemPoolCreate(&own, &properties));
    EXPECT_CUDA(cudaMemSetMemPool(&location, cudaMemAllocationTypePinned, own));
    EXPECT_CUDA(cudaMemGetMemPool(&told, &location, cudaMemAllocationTypePinned));
    EXPECT_EQ(told, own);
    EXPECT_CUDA(cudaDeviceGetMemPool(&told, device));
    EXPECT_EQ(told, own);
    EXPECT_CUDA(cudaDeviceGetMemPool(&told, 1 - device));
    EXPECT_NE(told, own);
    EXPECT_FAILS(cudaMemSetMemPool(&location, cudaMemAllocationTypeManaged, own), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaMemGetMemPool(&told, &location, cudaMemAllocationTypeManaged), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaMemGetMemPool(nullptr, &location, cudaMemAllocationTypePinned), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaMemGetDefaultMemPool(&told, &location, cudaMemAllocationTypeManaged), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaMemGetDefaultMemPool(nullptr, &location, cudaMemAllocationTypePinned), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaMemGetDefaultMemPool(&told, nullptr, cudaMemAllocationTypePinned), cudaErrorInvalidValue);
    EXPECT_CUDA(cudaMemPoolDestroy(own));  // the default pool is the current one again
    EXPECT_CUDA(cudaDeviceGetMemPool(&told, device));
    EXPECT_EQ(told, expected);
  }
  EXPECT_FAILS(cudaDeviceGetDefaultMemPool(nullptr, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetMemPool(nullptr, 0), cudaErrorInvalidValue);
  cudaMemPool_t told = nullptr;
  EXPECT_FAILS(cudaDeviceGetDefaultMemPool(&told, 2), cudaErrorInvalidDevice);
}

TEST(Pool, AccessIsGivenAndTakenAway) {
  const own_pool pool;
  int* const block = allocate(pool, 64, nullptr);
  const auto access_of = [&](int device) {
    cudaMemLocation location{cudaMemLocationTypeDevice, device};
    cudaMemAccessFlags flags{};
    EXPECT_CUDA(cudaMemPoolGetAccess(&flags, pool, &location));
    return flags;
  };
  const auto set = [&](int device, cudaMemAccessFlags flags) {
    const cudaMemAccessDesc list[] = {{{cudaMemLocationTypeDevice, device}, flags}};
    return cudaMemPoolSetAccess(pool, list, 1);
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(access_of(0), cudaMemAccessFlagsProtReadWrite);
    EXPECT_EQ(access_of(1), cudaMemAccessFlagsProtNone);
    EXPECT_CUDA(set(1, cudaMemAccessFlagsProtReadWrite));
    EXPECT_EQ(access_of(1), cudaMemAccessFlagsProtReadWrite);
    EXPECT_CUDA(set(1, cudaMemAccessFlagsProtNone));
  }
  EXPECT_CUDA(set(0, cudaMemAccessFlagsProtReadWrite));
  EXPECT_FAILS(set(0, cudaMemAccessFlagsProtNone), cudaErrorInvalidDevice);
  EXPECT_FAILS(set(1, cudaMemAccessFlagsProtRead), cudaErrorInvalidValue);
  EXPECT_FAILS(set(2, cudaMemAccessFlagsProtReadWrite), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaMemPoolSetAccess(pool, nullptr, 1), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemPoolSetAccess(pool, nullptr, 0));
  cudaMemLocation location{cudaMemLocationTypeDevice, 0};
  EXPECT_FAILS(cudaMemPoolGetAccess(nullptr, pool, &location), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFreeAsync(block, nullptr));
}

}  // namespace
