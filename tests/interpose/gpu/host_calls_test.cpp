// Calls of libc with device memory that the program allocated through the driver. The operating system refuses the
// addresses of this memory, so hpe stages the data.
#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "hpe/error.hpp"
#include "interpose/adopted_pointers.h"
#include "tests/interpose/gpu/driver_under_test.h"

namespace {

// A kernel that increments each byte of an array.
const stand_in::kernel increment{[](const std::uint64_t* parameters) {
                                   auto* const bytes = reinterpret_cast<std::uint8_t*>(stand_in::memory(parameters[0]));
                                   for (std::uint64_t i = 0; i < parameters[1]; ++i) ++bytes[i];
                                 },
                                 2};

class HostCalls : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    RecordProperty("seed", std::to_string(seed));
    std::mt19937_64 numbers(seed);
    data.resize(bytes);
    for (std::uint8_t& d : data) d = static_cast<std::uint8_t>(numbers());
    ASSERT_EQ(cuMemAlloc(&device, bytes + 2 * edge), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8(device, 0xaa, bytes + 2 * edge), CUDA_SUCCESS);
    ASSERT_NE(file, nullptr);
  }
  void TearDown() override { EXPECT_EQ(cuMemFree(device), CUDA_SUCCESS); }

  // Queues the kernel and does not wait, so that the next operation has to wait.
  void launch() {
    CUdeviceptr at = device + edge;
    std::uint64_t count = bytes;
    void* parameters[] = {&at, &count};
    auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&increment));
    ASSERT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
    for (std::uint8_t& d : data) ++d;
  }
  void put_data() { ASSERT_EQ(cuMemcpyHtoD(device + edge, data.data(), bytes), CUDA_SUCCESS); }
  void touch() const { ++*reinterpret_cast<std::uint8_t*>(device + edge / 2); }
  [[nodiscard]] std::uint8_t* memory() const { return reinterpret_cast<std::uint8_t*>(device + edge); }
  [[nodiscard]] int number() const { return ::fileno(file.get()); }

  // Checks the bytes, read through the driver and by CPU code. The bytes before and after the range must not have
  // changed.
  void expect_data(bool touched_before) {
    std::vector<std::uint8_t> all(bytes + 2 * edge);
    ASSERT_EQ(cuMemcpyDtoH(all.data(), device, all.size()), CUDA_SUCCESS);
    EXPECT_EQ(std::memcmp(all.data() + edge, data.data(), bytes), 0) << "seed " << seed;
    EXPECT_EQ(std::memcmp(memory(), data.data(), bytes), 0) << "seed " << seed;
    all[edge / 2] -= touched_before ? 1 : 0;
    for (std::size_t i = 0; i < edge; ++i) ASSERT_TRUE(all[i] == 0xaa && all[edge + bytes + i] == 0xaa) << i;
  }

  static constexpr std::size_t edge = 100;
  const std::size_t bytes = GetParam();
  const std::uint64_t seed = std::random_device{}();
  std::vector<std::uint8_t> data;
  CUdeviceptr device = 0;
  std::unique_ptr<FILE, int (*)(FILE*)> file{std::tmpfile(), std::fclose};
};

TEST_P(HostCalls, WriteSeesTheResultsOfQueuedWork) {
  for (const bool touched : {false, true}) {
    if (touched) touch();
    put_data();
    launch();
    ASSERT_EQ(::pwrite(number(), memory(), bytes, 0), static_cast<ssize_t>(bytes));
    std::vector<std::uint8_t> back(bytes);
    ASSERT_EQ(::pread(number(), back.data(), bytes, 0), static_cast<ssize_t>(bytes));
    EXPECT_EQ(back, data) << "seed " << seed;
  }
}

TEST_P(HostCalls, DevicesSeeTheBytesThatReadBrings) {
  for (const bool touched : {false, true}) {
    if (touched) touch();
    for (std::uint8_t& d : data) ++d;
    ASSERT_EQ(::pwrite(number(), data.data(), bytes, 0), static_cast<ssize_t>(bytes));
    ASSERT_EQ(::lseek(number(), 0, SEEK_SET), 0);
    ASSERT_EQ(::read(number(), memory(), bytes), static_cast<ssize_t>(bytes));
    launch();
    expect_data(touched);
  }
}

TEST_P(HostCalls, Streams) {
  put_data();
  launch();
  ASSERT_EQ(std::fwrite(memory(), 1, bytes, file.get()), bytes);
  ASSERT_EQ(std::fflush(file.get()), 0);
  std::rewind(file.get());
  ASSERT_EQ(cuMemsetD8(device, 0xaa, bytes + 2 * edge), CUDA_SUCCESS);
  ASSERT_EQ(std::fread(memory(), 1, bytes, file.get()), bytes);
  expect_data(false);
}

TEST_P(HostCalls, SocketsAndVectors) {
  int ends[2] = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  put_data();
  launch();
  std::thread sender([&] {
    iovec parts[] = {{memory(), bytes / 3}, {memory() + bytes / 3, bytes - bytes / 3}};
    std::size_t sent = 0;
    for (ssize_t n = ::writev(ends[0], parts, 2); n > 0 && sent + n < bytes;
         n = ::send(ends[0], memory() + sent, bytes - sent, 0))
      sent += n;
  });
  std::vector<std::uint8_t> back(bytes, 0xee);
  ASSERT_EQ(::recv(ends[1], back.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
  sender.join();
  EXPECT_EQ(back, data) << "seed " << seed;
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_P(HostCalls, DatagramsAreNotLost) {
  int ends[2] = {};
  const std::size_t size = std::min<std::size_t>(bytes, 2000);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
  ASSERT_EQ(::send(ends[0], data.data(), size, 0), static_cast<ssize_t>(size));
  ASSERT_EQ(::recv(ends[1], memory(), size, 0), static_cast<ssize_t>(size));
  EXPECT_EQ(std::memcmp(stand_in::memory(device + edge), data.data(), size), 0) << "seed " << seed;
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_P(HostCalls, PastTheEndIsRefused) {
  put_data();
  const ssize_t n = ::pwrite(number(), memory(), bytes + edge + 1, 0);
  EXPECT_TRUE(n == -1 || n == static_cast<ssize_t>(bytes + edge)) << n;
  errno = 0;
  void* volatile nowhere = nullptr;
  EXPECT_EQ(::pwrite(number(), nowhere, 8, 0), -1);
  EXPECT_EQ(errno, EFAULT);
}

// Uses device memory as MPI messages do (interpose/adopted_pointers.h).
class SharedMemory : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    ASSERT_EQ(cuMemAlloc(&device, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8(device, 1, bytes), CUDA_SUCCESS);
    pointers = hpe::interpose::adopted_pointers::instance();
    ASSERT_NE(pointers, nullptr);
  }
  void TearDown() override { EXPECT_EQ(cuMemFree(device), CUDA_SUCCESS); }

  [[nodiscard]] std::uint64_t number_of_memory() const {
    std::uint64_t number = 0;
    EXPECT_EQ(cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_BUFFER_ID, device), CUDA_SUCCESS);
    return number;
  }

  static constexpr std::size_t bytes = std::size_t{6} << 20;
  CUdeviceptr device = 0;
  hpe::interpose::adopted_pointers* pointers = nullptr;
};

// After a large allocation is freed, the driver may reuse its addresses for the next allocation.
TEST_F(SharedMemory, OtherMemoryThatComesMeanwhileKeepsItsName) {
  const CUdeviceptr first = device;
  std::function<void()> replaced = [&] {
    EXPECT_EQ(cuMemFree(device), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&device, bytes), CUDA_SUCCESS);
    EXPECT_EQ(pointers->bytes_from(device), bytes);
  };
  stand_in::meanwhile("cuIpcGetMemHandle", replaced);
  const auto read = hpe::interpose::adopted_pointers::peer_use::read;
  static_cast<void>(pointers->share(device, bytes, read, pointers->queued_now()));
  ASSERT_EQ(device, first);
  const auto shared = pointers->share(device, bytes, read, pointers->queued_now());
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->allocation, number_of_memory());
}

// The program frees host memory that it has passed to calls, and gets device memory at the same address.
TEST_F(SharedMemory, IsFoundAtTheAddressOfFormerHostMemory) {
  using hpe::interpose::adopted_pointers;
  void* const host = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(host, MAP_FAILED);
  const auto address = reinterpret_cast<CUdeviceptr>(host);
  for (int n = 0; n < 2; ++n) EXPECT_EQ(adopted_pointers::of(host), nullptr);
  ASSERT_EQ(::munmap(host, bytes), 0);
  CUdeviceptr reserved = 0;
  ASSERT_EQ(cuMemAddressReserve(&reserved, bytes, 0, address, 0), CUDA_SUCCESS);
  ASSERT_EQ(reserved, address);
  CUmemAllocationProp what{};
  what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(cuMemCreate(&handle, bytes, &what, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(reserved, bytes, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(adopted_pointers::of(host), pointers);
  EXPECT_EQ(cuMemUnmap(reserved, bytes), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(reserved, bytes), CUDA_SUCCESS);
}

TEST_F(SharedMemory, MemoryBelowTouchedMemoryIsUntouched) {
  CUdeviceptr other = 0;
  ASSERT_EQ(cuMemAlloc(&other, bytes), CUDA_SUCCESS);
  if (other < device) std::swap(device, other);
  ++*reinterpret_cast<std::uint8_t*>(other);
  EXPECT_TRUE(
      pointers->share(device, bytes, hpe::interpose::adopted_pointers::peer_use::overwrite, pointers->queued_now()));
  EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
}

TEST_F(SharedMemory, HostBytesThatCannotBeGivenUpAreAnError) {
  ++*reinterpret_cast<std::uint8_t*>(device);
  auto* const reset = stand_in::find<CUresult(CUdevice)>("cuDevicePrimaryCtxReset_v2");
  std::function<void()> lost = [&] { EXPECT_EQ(reset(0), CUDA_SUCCESS); };
  stand_in::meanwhile("cuMemcpyAsync", lost);
  EXPECT_THROW(pointers->overwritten(device, bytes), hpe::error);
  stand_in::enter_device_0();
  device = 0;
}

INSTANTIATE_TEST_SUITE_P(Sizes, HostCalls,
                         testing::Values(1, 4097, (std::size_t{2} << 20) + 3, (std::size_t{19} << 20) + 5));

}  // namespace
