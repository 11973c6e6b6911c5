// MPI_Pack and MPI_Unpack of device memory return before the device has made their copies (deferred_copies). The
// program must not notice the delay.
#include <cuda.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "tests/interpose/gpu/driver_under_test.h"

namespace {

using hpe::interpose::adopted_pointers;
using namespace std::chrono_literals;

constexpr std::size_t count = 512, width = 8, bytes = count * width;

// A kernel that increments each byte of an array.
const stand_in::kernel increment{[](const std::uint64_t* parameters) {
                                   auto* const at = reinterpret_cast<std::uint8_t*>(stand_in::memory(parameters[0]));
                                   for (std::uint64_t i = 0; i < parameters[1]; ++i) ++at[i];
                                 },
                                 2};

class DeferredCopies : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    pointers_ = adopted_pointers::instance();
    ASSERT_NE(pointers_, nullptr);
    ASSERT_EQ(cuMemAlloc(&rows_, 2 * bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&packed_, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&other_, 2 * bytes), CUDA_SUCCESS);
    std::vector<std::uint8_t> all(2 * bytes);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    for (std::size_t i = 0; i < bytes; ++i) expected_.push_back(all[i / width * 2 * width + i % width]);
    ASSERT_EQ(cuMemcpyHtoD(rows_, all.data(), all.size()), CUDA_SUCCESS);
    ASSERT_TRUE(pack());  // the first call loads hpe's kernels
    ASSERT_NO_FATAL_FAILURE(clear());
  }
  void TearDown() override {
    stand_in::pause(false);
    for (const CUdeviceptr each : {rows_, packed_, other_}) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
  }

  // The first half of each 16 bytes.
  static hpe::interpose::scattered_bytes every_second() {
    static const auto element =
        std::make_shared<const std::vector<hpe::interpose::stretch>>(1, hpe::interpose::stretch{0, width});
    return {element, width, 2 * width};
  }
  bool pack() { return pointers_->pack(packed_, rows_, every_second(), bytes); }
  void clear() {
    stand_in::pause(false);
    ASSERT_EQ(cuMemsetD8(packed_, 0, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8(other_, 0, 2 * bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  // Packs while the stand-in does no work.
  void defer_a_copy() {
    ASSERT_NO_FATAL_FAILURE(clear());
    stand_in::pause(true);
    ASSERT_TRUE(pack());
    ASSERT_EQ(packed_now(), std::vector<std::uint8_t>(bytes)) << "the copy is done";
  }
  [[nodiscard]] std::vector<std::uint8_t> packed_now() const {
    const auto* const at = reinterpret_cast<const std::uint8_t*>(stand_in::memory(packed_));
    return {at, at + bytes};
  }
  static std::future<void> begin(const std::function<void()>& act) {
    return std::async(std::launch::async, [act] {
      stand_in::enter_device_0();
      act();
    });
  }
  // Expects that act() returns only when the stand-in works again.
  static void expect_wait(const std::function<void()>& act) {
    std::future<void> done = begin(act);
    EXPECT_EQ(done.wait_for(100ms), std::future_status::timeout);
    stand_in::pause(false);
    done.get();
  }
  static void launch(CUdeviceptr at, std::uint64_t size) {
    void* parameters[] = {&at, &size};
    auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&increment));
    ASSERT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_PER_THREAD, parameters, nullptr), CUDA_SUCCESS);
  }

  CUdeviceptr rows_ = 0, packed_ = 0, other_ = 0;
  std::vector<std::uint8_t> expected_;
  adopted_pointers* pointers_ = nullptr;
};

TEST_F(DeferredCopies, LaterUsesOfTheMemoryWait) {
  std::vector<std::uint8_t> seen(bytes);
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::tmpfile(), std::fclose);
  ASSERT_NE(file, nullptr);
  auto* const as_pointer = reinterpret_cast<const volatile std::uint8_t*>(packed_);
  const auto read = adopted_pointers::peer_use::read;
  const std::vector<std::pair<const char*, std::function<void()>>> uses{
      {"a copy to the host", [&] { EXPECT_EQ(cuMemcpyDtoH(seen.data(), packed_, bytes), CUDA_SUCCESS); }},
      {"a copy between devices", [&] { EXPECT_EQ(cuMemcpyDtoDAsync(other_, packed_, bytes, nullptr), CUDA_SUCCESS); }},
      {"a fill of the source", [&] { EXPECT_EQ(cuMemsetD8Async(rows_, 0, width, nullptr), CUDA_SUCCESS); }},
      {"a call of libc",
       [&] { EXPECT_EQ(::pwrite(::fileno(file.get()), reinterpret_cast<void*>(packed_), bytes, 0), bytes); }},
      {"a message", [&] { EXPECT_TRUE(pointers_->share(packed_, bytes, read, pointers_->queued_now())); }},
      {"CPU code", [&] { EXPECT_EQ(*as_pointer, expected_[0]); }},
  };
  std::vector<std::uint8_t> row(width);
  ASSERT_EQ(cuMemcpyDtoH(row.data(), rows_, width), CUDA_SUCCESS);
  for (const auto& [name, act] : uses) {
    SCOPED_TRACE(name);
    ASSERT_NO_FATAL_FAILURE(defer_a_copy());
    expect_wait(act);
    EXPECT_EQ(packed_now(), expected_);
    ASSERT_EQ(cuMemcpyHtoD(rows_, row.data(), width), CUDA_SUCCESS);
  }
}

TEST_F(DeferredCopies, AnyLaunchWaits) {
  ASSERT_NO_FATAL_FAILURE(defer_a_copy());
  expect_wait([&] { launch(packed_, bytes); });
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  for (std::uint8_t& each : expected_) ++each;
  EXPECT_EQ(packed_now(), expected_);
}

TEST_F(DeferredCopies, TheEndOfTheMemoryWaits) {
  ASSERT_NO_FATAL_FAILURE(defer_a_copy());
  expect_wait([&] { EXPECT_EQ(cuMemFreeAsync(packed_, CU_STREAM_PER_THREAD), CUDA_SUCCESS); });
  ASSERT_EQ(cuMemAlloc(&packed_, bytes), CUDA_SUCCESS);
}

TEST_F(DeferredCopies, OtherMemoryCanBeUsedMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(defer_a_copy());
  std::future<void> done = begin([&] {
    EXPECT_EQ(cuMemsetD8Async(other_, 5, bytes, nullptr), CUDA_SUCCESS);
    EXPECT_TRUE(pointers_->share(rows_, bytes, adopted_pointers::peer_use::read, 0)) << "the copy only reads";
  });
  EXPECT_EQ(done.wait_for(10s), std::future_status::ready);
  stand_in::pause(false);
  done.get();
}

TEST_F(DeferredCopies, CopiesThatUseTheResultsOfOthersAreRight) {
  for (int n = 0; n < 3; ++n) {
    ASSERT_NO_FATAL_FAILURE(clear());
    ASSERT_TRUE(pack());
    ASSERT_TRUE(pointers_->unpack(other_, every_second(), packed_, bytes));
    std::vector<std::uint8_t> unpacked(2 * bytes);
    ASSERT_EQ(cuMemcpyDtoH(unpacked.data(), other_, unpacked.size()), CUDA_SUCCESS);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(unpacked[i / width * 2 * width + i % width], expected_[i]) << i;
  }
}

TEST_F(DeferredCopies, ACopyBeginsAfterTheWorkThatRuns) {
  ASSERT_NO_FATAL_FAILURE(clear());
  stand_in::pause(true);
  ASSERT_NO_FATAL_FAILURE(launch(rows_, 2 * bytes));
  expect_wait([&] { EXPECT_TRUE(pack()); });
  std::vector<std::uint8_t> copied(bytes);
  ASSERT_EQ(cuMemcpyDtoH(copied.data(), packed_, bytes), CUDA_SUCCESS);
  for (std::uint8_t& each : expected_) ++each;
  EXPECT_EQ(copied, expected_);
}

TEST_F(DeferredCopies, ManyCopiesNeedFewLaunches) {
  constexpr unsigned many = 78;
  constexpr std::size_t room = 256;
  CUdeviceptr all = 0;
  ASSERT_EQ(cuMemAlloc(&all, many * room), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8(all, 0, many * room), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  const unsigned launches = stand_in::calls("cuLaunchKernel"), waits = stand_in::calls("cuStreamSynchronize");
  // The sizes differ, and so do the alignments.
  for (unsigned n = 0; n < many; ++n)
    ASSERT_TRUE(pointers_->pack(all + n * room + n % 16, rows_ + n % 2 * 2 * width, every_second(), n + 1));
  EXPECT_EQ(stand_in::calls("cuStreamSynchronize"), waits);
  std::vector<std::uint8_t> copied(many * room);
  ASSERT_EQ(cuMemcpyDtoH(copied.data(), all, copied.size()), CUDA_SUCCESS);
  EXPECT_LE(stand_in::calls("cuLaunchKernel"), launches + 3);
  for (unsigned n = 0; n < many; ++n)
    for (std::size_t i = 0; i < room; ++i)
      ASSERT_EQ(copied[n * room + i], i >= n % 16 && i <= n % 16 + n ? expected_[n % 2 * width + i - n % 16] : 0)
          << "copy " << n << ", byte " << i;
  EXPECT_EQ(cuMemFree(all), CUDA_SUCCESS);
}

// The rows of the copies lie between each other, as the faces of a block do. hpe does not compare the rows; the copies
// run one after another.
TEST_F(DeferredCopies, UnpackingIntoOneArrayNeedsNoWait) {
  ASSERT_TRUE(pack());
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  stand_in::pause(true);
  const unsigned waits = stand_in::calls("cuStreamSynchronize");
  for (int n = 0; n < 10; ++n) {
    ASSERT_TRUE(pointers_->unpack(other_, every_second(), packed_, bytes));
    ASSERT_TRUE(pointers_->unpack(other_ + width, every_second(), packed_, bytes));
  }
  EXPECT_EQ(stand_in::calls("cuStreamSynchronize"), waits);
  stand_in::pause(false);
  std::vector<std::uint8_t> unpacked(2 * bytes);
  ASSERT_EQ(cuMemcpyDtoH(unpacked.data(), other_, unpacked.size()), CUDA_SUCCESS);
  for (std::size_t i = 0; i < unpacked.size(); ++i)
    ASSERT_EQ(unpacked[i], expected_[i / (2 * width) * width + i % width]) << i;
}

TEST_F(DeferredCopies, TheLastOfSeveralCopiesToOnePlaceWins) {
  for (int n = 0; n < 5; ++n) {
    ASSERT_TRUE(pointers_->pack(packed_, rows_ + 2 * width, every_second(), bytes - width));
    ASSERT_TRUE(pack());
  }
  std::vector<std::uint8_t> copied(bytes);
  ASSERT_EQ(cuMemcpyDtoH(copied.data(), packed_, bytes), CUDA_SUCCESS);
  EXPECT_EQ(copied, expected_);
}

// CPU code that continues after a call may change the bytes that the call has packed.
TEST_F(DeferredCopies, LaterChangesOfTheSourceDoNotCount) {
  auto* const as_pointer = reinterpret_cast<volatile std::uint8_t*>(rows_);
  *as_pointer = static_cast<std::uint8_t>(*as_pointer + 1);
  ++expected_[0];
  for (int n = 0; n < 3; ++n) {
    ASSERT_TRUE(pack());
    *as_pointer = static_cast<std::uint8_t>(*as_pointer + 1);
    ASSERT_TRUE(pointers_->pack(other_, rows_, every_second(), bytes));
    std::vector<std::uint8_t> copied(bytes), copied_later(bytes);
    ASSERT_EQ(cuMemcpyDtoH(copied.data(), packed_, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoH(copied_later.data(), other_, bytes), CUDA_SUCCESS);
    EXPECT_EQ(copied, expected_);
    ++expected_[0];
    EXPECT_EQ(copied_later, expected_);
  }
}

TEST_F(DeferredCopies, AFailedCopyIsToldOnce) {
  ASSERT_NO_FATAL_FAILURE(defer_a_copy());
  stand_in::pause(false);
  stand_in::fail("cuStreamSynchronize", CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_NE(cuMemsetD8Async(packed_, 5, bytes, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(packed_, 5, bytes, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(DeferredCopies, RefusedCopiesAreToldOnce) {
  stand_in::fail("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  ASSERT_TRUE(pack());
  std::vector<std::uint8_t> copied(bytes);
  EXPECT_NE(cuMemcpyDtoH(copied.data(), packed_, bytes), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH(copied.data(), packed_, bytes), CUDA_SUCCESS);
  ASSERT_TRUE(pack());
  EXPECT_EQ(cuMemcpyDtoH(copied.data(), packed_, bytes), CUDA_SUCCESS);
  EXPECT_EQ(copied, expected_);
}

// A halo exchange may use several datatypes for each of 26 neighbours and each array, and a face of a large block has
// hundreds of thousands of runs.
TEST_F(DeferredCopies, DatatypesAreDescribedToTheDeviceOnce) {
  for (const auto& [count_of_types, runs] : {std::pair{300, 2}, std::pair{12, 300000}}) {
    std::vector<hpe::interpose::stretch> element;
    for (std::ptrdiff_t n = 0; n < runs; ++n) element.push_back({n * 2 * static_cast<std::ptrdiff_t>(width), width});
    std::vector<hpe::interpose::scattered_bytes> types;
    for (int n = 0; n < count_of_types; ++n)
      types.push_back({std::make_shared<const std::vector<hpe::interpose::stretch>>(element), runs * width,
                       2 * runs * static_cast<std::ptrdiff_t>(width)});
    const auto pack_all = [&] {
      for (const auto& type : types) ASSERT_TRUE(pointers_->pack(packed_, rows_, type, 2 * width));
      ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    };
    ASSERT_NO_FATAL_FAILURE(pack_all());
    const unsigned before = stand_in::calls("cuMemcpyAsync");
    ASSERT_NO_FATAL_FAILURE(pack_all());
    EXPECT_EQ(stand_in::calls("cuMemcpyAsync"), before);
    const std::vector<std::uint8_t> packed = packed_now();
    EXPECT_TRUE(std::equal(packed.begin(), packed.begin() + 2 * width, expected_.begin()));
  }
}

TEST_F(DeferredCopies, ManyDatatypesNeedNoMoreMemory) {
  const auto use_types = [&](int types) {
    for (int n = 0; n < types; ++n) {
      const auto element = std::make_shared<const std::vector<hpe::interpose::stretch>>(
          std::initializer_list<hpe::interpose::stretch>{{0, 4}, {8, 4}});
      ASSERT_TRUE(pointers_->pack(packed_, rows_, {element, 8, 16}, 64));
      ASSERT_EQ(cuMemsetD8Async(packed_, 0, 64, nullptr), CUDA_SUCCESS);
    }
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  };
  ASSERT_NO_FATAL_FAILURE(use_types(100));
  const unsigned made = stand_in::calls("cuMemAlloc_v2");
  ASSERT_NO_FATAL_FAILURE(use_types(100));
  EXPECT_EQ(stand_in::calls("cuMemAlloc_v2"), made);
}

// Mapped memory may have a second address, by which hpe would not find the copy.
TEST_F(DeferredCopies, CopiesOfMappedMemoryAreNotDeferred) {
  CUmemAllocationProp what{};
  what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  constexpr std::size_t size = std::size_t{2} << 20;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  ASSERT_EQ(cuMemCreate(&handle, size, &what, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAddressReserve(&at, size, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(at, size, 0, handle, 0), CUDA_SUCCESS);
  const CUmemAccessDesc access{what.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_EQ(cuMemSetAccess(at, size, &access, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  stand_in::pause(true);
  expect_wait([&] { EXPECT_TRUE(pointers_->pack(at, rows_, every_second(), bytes)); });
  EXPECT_EQ(cuMemUnmap(at, size), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(at, size), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

// hpe does not notice when another process or a network card reads the memory. This test is the last one in the file,
// because it forbids deferred copies for the rest of the process.
TEST_F(DeferredCopies, CopiesAreNotDeferredOnceOtherProcessesMayUseTheMemory) {
  ASSERT_NO_FATAL_FAILURE(defer_a_copy());
  CUipcMemHandle handle{};
  expect_wait([&] { EXPECT_EQ(cuIpcGetMemHandle(&handle, packed_), CUDA_SUCCESS); });
  ASSERT_NO_FATAL_FAILURE(clear());
  stand_in::pause(true);
  expect_wait([&] { EXPECT_TRUE(pack()); });
  EXPECT_EQ(packed_now(), expected_);
}

}  // namespace
