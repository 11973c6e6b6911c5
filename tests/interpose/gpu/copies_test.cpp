// Copies from and to pageable memory. The stand-in executes a copy some time after the call, so the tests fail if hpe
// releases memory too early.
#include <cuda.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "tests/interpose/gpu/driver_under_test.h"
#include "tests/interpose/gpu/failing_memory.h"

namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

std::uint64_t seed() {
  static const std::uint64_t value = std::random_device{}();
  return value;
}

std::vector<std::uint8_t> fresh(std::size_t bytes) {
  static std::mt19937_64 source(seed());
  std::vector<std::uint8_t> result(bytes);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = source();
    std::memcpy(result.data() + i, &word, std::min<std::size_t>(8, bytes - i));
  }
  return result;
}

class Copies : public testing::Test {
 protected:
  void SetUp() override {
    RecordProperty("seed", std::to_string(seed()));
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    ASSERT_EQ(cuMemAlloc(&device, bytes), CUDA_SUCCESS);
    // hpe allocates and pins its staging buffers only after 64 MiB of copies.
    const std::vector<std::uint8_t> much(bytes);
    for (std::size_t at = 0; at < 64 * MiB; at += bytes)
      ASSERT_EQ(cuMemcpyHtoD(device, much.data(), bytes), CUDA_SUCCESS);
  }
  void TearDown() override { EXPECT_EQ(cuMemFree(device), CUDA_SUCCESS); }

  [[nodiscard]] bool holds(const std::vector<std::uint8_t>& expected, std::size_t offset = 0) const {
    cuCtxSynchronize();
    return std::memcmp(stand_in::memory(device + offset), expected.data(), expected.size()) == 0;
  }

  static constexpr std::size_t bytes = 40 * MiB + 12345;
  CUdeviceptr device = 0;
};

TEST_F(Copies, UpAndDownInChunks) {
  for (const std::size_t size : {MiB, 4 * MiB - 1, 4 * MiB, 4 * MiB + 1, bytes}) {
    const auto source = fresh(size);
    const unsigned direct = stand_in::calls("cuMemcpyHtoD_v2");
    ASSERT_EQ(cuMemcpyHtoD(device, source.data(), size), CUDA_SUCCESS);
    EXPECT_EQ(stand_in::calls("cuMemcpyHtoD_v2"), direct) << "the driver's own staging was used";
    EXPECT_TRUE(holds(source)) << size << " bytes, seed " << seed();
    std::vector<std::uint8_t> back(size, 0xee);
    ASSERT_EQ(cuMemcpyDtoH(back.data(), device, size), CUDA_SUCCESS);
    EXPECT_EQ(back, source) << size << " bytes, seed " << seed();
  }
}

// Whether the mapping at an address has a flag, for example "hg" after MADV_HUGEPAGE; nullopt if there is no mapping.
std::optional<bool> has_flag(const void* address, const std::string& flag) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      inside = begin <= at && at < end;
    } else if (inside && line.starts_with("VmFlags:")) {
      return (line + ' ').find(' ' + flag + ' ') != std::string::npos;
    }
  }
  return std::nullopt;
}

TEST_F(Copies, DownloadsMakeThePagesOfNewMemory) {
  const auto source = fresh(bytes);
  ASSERT_EQ(cuMemcpyHtoD(device, source.data(), bytes), CUDA_SUCCESS);
  const bool has_huge_pages = ::access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0;
  for (const std::size_t size : {4 * MiB - 1, 4 * MiB + 17, bytes}) {
    for (const bool is_new : {true, false}) {
      void* const memory = ::mmap(nullptr, bytes + MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(memory, MAP_FAILED);
      if (!is_new) std::memset(memory, 0xee, bytes + MiB);
      auto* const to = static_cast<std::uint8_t*>(memory) + 12347;
      ASSERT_EQ(cuMemcpyDtoH(to, device, size), CUDA_SUCCESS);
      EXPECT_EQ(std::memcmp(to, source.data(), size), 0) << size << " bytes, seed " << seed();
      const std::uint8_t around = is_new ? 0 : 0xee;
      EXPECT_EQ(to[-1], around);
      EXPECT_EQ(to[size], around);
      EXPECT_EQ(has_flag(to + size / 2, "hg").value_or(false), has_huge_pages && is_new && size >= 4 * MiB) << size;
      ::munmap(memory, bytes + MiB);
    }
  }
}

TEST_F(Copies, DownloadsLeaveMemoryWithoutHugePagesSo) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  if (::madvise(memory, bytes, MADV_NOHUGEPAGE) != 0) GTEST_SKIP() << "this system has no huge pages";
  ASSERT_EQ(cuMemcpyDtoH(memory, device, bytes), CUDA_SUCCESS);
  EXPECT_EQ(has_flag(static_cast<std::byte*>(memory) + bytes / 2, "nh"), true);
  ::munmap(memory, bytes);
}

// Files with a hole, of which the page tables have no pages, and private mappings with changed pages.
TEST_F(Copies, OfMappedFiles) {
  const int file = ::memfd_create("weights", MFD_CLOEXEC);
  const std::size_t hole = 7 * MiB + 4096;
  auto content = fresh(bytes);
  std::fill_n(content.begin() + 3 * MiB, hole, std::uint8_t{0});
  ASSERT_EQ(::ftruncate(file, bytes), 0);
  ASSERT_EQ(::pwrite(file, content.data(), 3 * MiB, 0), 3 * MiB);
  ASSERT_EQ(::pwrite(file, content.data() + 3 * MiB + hole, bytes - 3 * MiB - hole, 3 * MiB + hole),
            static_cast<ssize_t>(bytes - 3 * MiB - hole));
  for (const int kind : {MAP_SHARED, MAP_PRIVATE}) {
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, file, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* const mapped = static_cast<std::uint8_t*>(memory);
    for (int n = 0; n < 2; ++n) {
      ASSERT_EQ(cuMemcpyHtoD(device, mapped, bytes), CUDA_SUCCESS);
      EXPECT_TRUE(holds(content)) << "seed " << seed();
      if (kind == MAP_SHARED) continue;
      for (const std::size_t at : {std::size_t{5}, 4 * MiB, bytes - 1}) mapped[at] = content[at] ^= 1;
    }
    ::munmap(memory, bytes);
  }
  ::close(file);
}

// A file in a file system of huge pages, with `size` bytes.
class file_of_huge_pages {
 public:
  explicit file_of_huge_pages(std::size_t size) {
    std::ifstream mounts("/proc/mounts");
    for (std::string device, folder, kind, rest; file_ < 0 && mounts >> device >> folder >> kind;) {
      std::getline(mounts, rest);
      const std::string name = folder + "/hpe-copies-" + std::to_string(::getpid());
      if (kind != "hugetlbfs") continue;
      file_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      ::unlink(name.c_str());
      if (file_ >= 0 && ::ftruncate(file_, static_cast<off_t>(size)) != 0) throw std::bad_alloc();
    }
  }
  ~file_of_huge_pages() {
    if (file_ >= 0) ::close(file_);
  }
  file_of_huge_pages(const file_of_huge_pages&) = delete;
  file_of_huge_pages& operator=(const file_of_huge_pages&) = delete;
  [[nodiscard]] int number() const { return file_; }
  // Null if there is no such file system, or if it has too few free pages.
  [[nodiscard]] std::uint8_t* map(std::size_t size, int kind) const {
    void* const memory = file_ < 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, kind, file_, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(memory);
  }

 private:
  int file_ = -1;
};

constexpr const char* no_huge_pages = "no hugetlbfs with free pages is mounted (vm.nr_hugepages)";

// The file has a hole, which a copy to the device reads as zeros, and which a copy from the device and a read fill.
TEST_F(Copies, OfMappedFilesOfHugePages) {
  constexpr std::size_t size = 6 * MiB, page = 2 * MiB;
  for (const int kind : {MAP_SHARED, MAP_PRIVATE}) {
    const file_of_huge_pages file(size);
    std::uint8_t* const mapped = file.map(size, kind);
    if (mapped == nullptr) GTEST_SKIP() << no_huge_pages;
    auto content = fresh(size);
    std::fill_n(content.begin() + page, page, std::uint8_t{0});
    for (const std::size_t at : {std::size_t{0}, 2 * page}) std::copy_n(&content[at], page, mapped + at);
    ASSERT_EQ(cuMemcpyHtoD(device, mapped, size), CUDA_SUCCESS);
    EXPECT_TRUE(holds(content)) << "seed " << seed();
    if (kind == MAP_SHARED) {
      ASSERT_EQ(cuMemsetD8(device, 0xaa, size), CUDA_SUCCESS);
      // NOLINTNEXTLINE(performance-no-int-to-ptr): CUDA's integer address
      ASSERT_EQ(::pread(file.number(), reinterpret_cast<void*>(device), size, 0), static_cast<ssize_t>(size));
      EXPECT_TRUE(holds(content)) << "seed " << seed();
    }
    ::munmap(mapped, size);
  }
  const auto wanted = fresh(size);
  ASSERT_EQ(cuMemcpyHtoD(device, wanted.data(), size), CUDA_SUCCESS);
  const int source = ::memfd_create("values", MFD_CLOEXEC);
  ASSERT_EQ(::pwrite(source, wanted.data(), size, 0), static_cast<ssize_t>(size));
  for (const bool by_copy : {true, false}) {
    const file_of_huge_pages file(size);
    std::uint8_t* const mapped = file.map(size, MAP_SHARED);
    if (mapped == nullptr) GTEST_SKIP() << no_huge_pages;
    if (by_copy) {
      ASSERT_EQ(cuMemcpyDtoH(mapped, device, size), CUDA_SUCCESS);
    } else {
      ASSERT_EQ(::pread(source, mapped, size, 0), static_cast<ssize_t>(size));
    }
    EXPECT_EQ(std::memcmp(mapped, wanted.data(), size), 0) << "seed " << seed();
    ::munmap(mapped, size);
  }
  ::close(source);
}

// As without hpe.
TEST_F(Copies, OfAFileOfHugePagesThatIsShorterThanItsMappingEndTheProgram) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  constexpr std::size_t size = 6 * MiB;
  const file_of_huge_pages file(size);
  std::uint8_t* const mapped = file.map(size, MAP_SHARED);
  if (mapped == nullptr) GTEST_SKIP() << no_huge_pages;
  ASSERT_EQ(::ftruncate(file.number(), 2 * MiB), 0);
  for (const bool up : {true, false})
    EXPECT_EXIT(
        {
          std::signal(SIGBUS, SIG_DFL);
          (void)(up ? cuMemcpyHtoD(device, mapped, size) : cuMemcpyDtoH(mapped, device, size));
        },
        testing::KilledBySignal(SIGBUS), "");
  ::munmap(mapped, size);
}

// As without hpe.
TEST_F(Copies, OfAFileThatIsShorterThanItsMappingEndTheProgram) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const int file = ::memfd_create("weights", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, 8 * MiB), 0);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(cuMemcpyHtoD(device, memory, 8 * MiB), CUDA_SUCCESS);
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, SIG_DFL);
        (void)cuMemcpyHtoD(device, memory, bytes);
      },
      testing::KilledBySignal(SIGBUS), "");
  ::munmap(memory, bytes);
  ::close(file);
}

TEST_F(Copies, TheSourceMayBeOverwrittenAtOnce) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const auto wanted = fresh(bytes);
  auto source = wanted;
  ASSERT_EQ(cuMemcpyHtoDAsync(device, source.data(), bytes, stream), CUDA_SUCCESS);
  std::memset(source.data(), 0xee, bytes);
  EXPECT_TRUE(holds(wanted)) << "seed " << seed();
  std::vector<std::uint8_t> back(bytes, 0xee);
  ASSERT_EQ(cuMemcpyDtoHAsync(back.data(), device, bytes, stream), CUDA_SUCCESS);
  EXPECT_EQ(back, wanted) << "the data has arrived when the call returns; seed " << seed();
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST_F(Copies, EntriesThatTakeAnyTwoAddresses) {
  const auto source = fresh(bytes);
  std::vector<std::uint8_t> back(bytes, 0xee);
  ASSERT_EQ(cuMemcpy(device, reinterpret_cast<CUdeviceptr>(source.data()), bytes), CUDA_SUCCESS);
  EXPECT_TRUE(holds(source)) << "seed " << seed();
  ASSERT_EQ(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(back.data()), device, bytes, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(back, source) << "seed " << seed();
}

TEST_F(Copies, BetweenDeviceMemoryGoStraightOn) {
  CUdeviceptr other = 0;
  ASSERT_EQ(cuMemAlloc(&other, bytes), CUDA_SUCCESS);
  const auto source = fresh(bytes);
  ASSERT_EQ(cuMemcpyHtoD(device, source.data(), bytes), CUDA_SUCCESS);
  const unsigned before = stand_in::calls("cuMemcpy");
  ASSERT_EQ(cuMemcpy(other, device, bytes), CUDA_SUCCESS);
  EXPECT_EQ(stand_in::calls("cuMemcpy"), before + 1);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(stand_in::memory(other), source.data(), bytes), 0);
  EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
}

TEST_F(Copies, SmallAndPinnedGoStraightOn) {
  const auto source = fresh(MiB - 1);
  const unsigned before = stand_in::calls("cuMemcpyHtoD_v2");
  ASSERT_EQ(cuMemcpyHtoD(device, source.data(), source.size()), CUDA_SUCCESS);
  void* pinned = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&pinned, bytes, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoD(device, pinned, bytes), CUDA_SUCCESS);
  EXPECT_EQ(stand_in::calls("cuMemcpyHtoD_v2"), before + 2);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST_F(Copies, ErrorsAreTheDrivers) {
  const auto source = fresh(bytes);
  const auto before = fresh(16);
  ASSERT_EQ(cuMemcpyHtoD(device, before.data(), before.size()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoD(device + 1, source.data(), bytes), CUDA_ERROR_INVALID_VALUE)
      << "past the end of the allocation";
  EXPECT_TRUE(holds(before)) << "nothing was copied; seed " << seed();
  EXPECT_EQ(cuMemcpyHtoD(16, source.data(), bytes), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoD(device, source.data(), bytes), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Copies, OfManyThreads) {
  std::vector<std::thread> threads;
  std::vector<std::vector<std::uint8_t>> sources;
  constexpr std::size_t part = 3 * MiB + 17;
  for (std::size_t t = 0; t < 8; ++t) sources.push_back(fresh(part));
  std::atomic<int> good{0};
  for (std::size_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      CUcontext context = nullptr;
      cuDevicePrimaryCtxRetain(&context, 0);
      cuCtxSetCurrent(context);
      std::vector<std::uint8_t> back(part);
      for (int round = 0; round < 5; ++round) {
        std::fill(back.begin(), back.end(), 0xee);
        const bool copied = cuMemcpyHtoD(device + t * part, sources[t].data(), part) == CUDA_SUCCESS &&
                            cuMemcpyDtoH(back.data(), device + t * part, part) == CUDA_SUCCESS;
        good += copied && back == sources[t] ? 1 : 0;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, 40) << "seed " << seed();
}

// If recording the event fails, hpe does not know when the buffer is free, so the program must get an error.
TEST_F(Copies, ABufferWhoseUseCannotBeNotedIsAnError) {
  const auto source = fresh(bytes);
  std::vector<std::uint8_t> back(bytes, 0xee);
  stand_in::fail("cuEventRecord", CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuMemcpyHtoD(device, source.data(), bytes), CUDA_ERROR_UNKNOWN);
  ASSERT_EQ(cuMemcpyHtoD(device, source.data(), bytes), CUDA_SUCCESS);
  EXPECT_TRUE(holds(source)) << "seed " << seed();
  stand_in::fail("cuEventRecord", CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuMemcpyDtoH(back.data(), device, bytes), CUDA_ERROR_UNKNOWN);
  ASSERT_EQ(cuMemcpyDtoH(back.data(), device, bytes), CUDA_SUCCESS);
  EXPECT_EQ(back, source) << "seed " << seed();
}

// Wherever an allocation of host memory fails in a copy, the copy's buffers must return to the ring. If a buffer were
// lost, later copies would wait forever.
TEST_F(Copies, GoOnAfterAllocationsFail) {
  const auto source = fresh(bytes);
  ASSERT_EQ(cuMemcpyHtoD(device, source.data(), bytes), CUDA_SUCCESS);
  std::vector<std::uint8_t> back(bytes);
  unsigned short_of_memory = 0;
  for (int round = 0; round < 8; ++round)  // more rounds than there are buffers
    for (unsigned n = 1;; ++n) {
      failing_memory::arm(n);
      const CUresult result = cuMemcpyDtoH(back.data(), device, bytes);
      const bool is_end = !failing_memory::disarm();
      ASSERT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) << result;
      short_of_memory += result == CUDA_ERROR_OUT_OF_MEMORY ? 1 : 0;
      if (is_end) break;
    }
  EXPECT_GT(short_of_memory, 7u);
  ASSERT_EQ(cuMemcpyDtoH(back.data(), device, bytes), CUDA_SUCCESS);
  EXPECT_EQ(back, source) << "seed " << seed();
}

TEST_F(Copies, OfSizesBeyondTheAddressSpaceAreTheDrivers) {
  const auto source = fresh(2 * MiB);
  constexpr std::size_t most = ~std::size_t{0};
  CUDA_MEMCPY2D c{};
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = source.data();
  c.srcPitch = MiB;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = device;
  c.dstPitch = MiB;
  c.WidthInBytes = MiB;
  c.Height = (most >> 20) + 3;  // the product of width and height wraps around to 2 MiB
  EXPECT_EQ(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(device, source.data(), most), CUDA_ERROR_INVALID_VALUE);
}

// A stream may wait for a thread that copies on another stream.
TEST_F(Copies, DoNotWaitForCopiesOfABusyStream) {
  CUstream busy = nullptr;
  CUstream other = nullptr;
  ASSERT_EQ(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  CUdeviceptr second = 0;
  ASSERT_EQ(cuMemAlloc(&second, bytes), CUDA_SUCCESS);
  const auto function = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto in_thread = [&](const std::function<CUresult()>& copy) {
    return std::async(std::launch::async, [copy] {
      stand_in::enter_device_0();
      return copy();
    });
  };
  for (const bool is_download : {true, false}) {
    for (const std::size_t size : {MiB, bytes}) {
      SCOPED_TRACE(std::to_string(size) + (is_download ? " bytes down" : " bytes up"));
      const auto source = fresh(bytes);
      const auto first = fresh(size);
      std::vector<std::uint8_t> back(bytes);
      std::atomic<bool> goes_on{false};
      ASSERT_EQ(cuLaunchHostFunc(busy, function, &goes_on), CUDA_SUCCESS);
      auto of_busy = in_thread([&] {
        return is_download ? cuMemcpyDtoHAsync(back.data(), second, size, busy)
                           : cuMemcpyHtoDAsync(second, first.data(), size, busy);
      });
      EXPECT_EQ(of_busy.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout,
                is_download || size == bytes);
      auto of_other = in_thread([&] {
        const CUresult up = cuMemcpyHtoDAsync(device, source.data(), bytes, other);
        return up == CUDA_SUCCESS ? cuMemcpyDtoHAsync(back.data(), device, bytes, other) : up;
      });
      EXPECT_EQ(of_other.wait_for(std::chrono::seconds(10)), std::future_status::ready);
      goes_on = true;
      EXPECT_EQ(of_busy.get(), CUDA_SUCCESS);
      EXPECT_EQ(of_other.get(), CUDA_SUCCESS);
      EXPECT_TRUE(holds(source)) << "seed " << seed();
      if (!is_download) {
        EXPECT_EQ(back, source) << "seed " << seed();
        EXPECT_EQ(std::memcmp(stand_in::memory(second), first.data(), size), 0) << "seed " << seed();
      }
    }
  }
  EXPECT_EQ(cuMemFree(second), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(busy), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(other), CUDA_SUCCESS);
}

TEST_F(Copies, GoOnAfterContextsEnd) {
  const auto source = fresh(bytes);
  for (const bool behind : {false, true}) {
    ASSERT_EQ(cuMemcpyHtoD(device, source.data(), bytes), CUDA_SUCCESS);
    const unsigned freed = stand_in::calls("cuMemFreeHost");
    auto* const reset =
        behind ? stand_in::find<CUresult(CUdevice)>("cuDevicePrimaryCtxReset_v2") : &cuDevicePrimaryCtxReset;
    ASSERT_EQ(reset(0), CUDA_SUCCESS);
    EXPECT_EQ(stand_in::calls("cuMemFreeHost"), freed + (behind ? 0 : 1)) << "hpe's buffers are freed with the context";
    EXPECT_EQ(cuMemcpyHtoD(device, source.data(), bytes), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&device, bytes), CUDA_SUCCESS);
    const unsigned direct = stand_in::calls("cuMemcpyHtoD_v2");
    ASSERT_EQ(cuMemcpyHtoD(device, source.data(), bytes), CUDA_SUCCESS);
    EXPECT_EQ(stand_in::calls("cuMemcpyHtoD_v2"), direct) << "the driver's own staging was used";
    EXPECT_TRUE(holds(source)) << "seed " << seed();
    std::vector<std::uint8_t> back(bytes, 0xee);
    ASSERT_EQ(cuMemcpyDtoH(back.data(), device, bytes), CUDA_SUCCESS);
    EXPECT_EQ(back, source) << "seed " << seed();
  }
}

}  // namespace
