// Memory of cuMemCreate that the program exports as a file descriptor, and imports in the same or in another process.

#include "tests/interpose/soft/libcuda/shared_memory.h"

#include <cuda.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/interpose/soft/libcuda/driver_fixture.h"

namespace {

using namespace hpe::libcuda::test;

constexpr auto descriptors = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

std::vector<std::uint32_t> all(std::uint32_t value) { return std::vector<std::uint32_t>(words_of_piece, value); }

std::size_t free_memory() {
  std::size_t left = 0, total = 0;
  EXPECT_GOOD(cuMemGetInfo(&left, &total));
  return left;
}

/// A second process that uses the driver.
class other_process {
 public:
  other_process() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    socket_ = ends[0];
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    std::string path = HPE_SHARED_MEMORY_PEER;
    std::array<char*, 2> arguments{path.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&process_, path.c_str(), &actions, nullptr, arguments.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
  }
  ~other_process() { end(); }
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;

  CUresult tell(order::kind what, std::uint32_t value = 0, int descriptor = -1) {
    answer got{CUDA_ERROR_UNKNOWN};
    EXPECT_TRUE(send(socket_, order{what, value}, descriptor)) << "the other process has ended";
    EXPECT_TRUE(receive(socket_, got, descriptor_)) << "the other process has ended";
    return got.result;
  }

  /// The descriptor that came with the last answer; the caller owns it.
  [[nodiscard]] int descriptor() const { return descriptor_; }

  void end() {
    if (process_ < 0) return;
    ::close(socket_);
    int status = -1;
    ::waitpid(process_, &status, 0);
    EXPECT_EQ(status, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
  int socket_ = -1;
  int descriptor_ = -1;
};

class SharedMemory : public Queries {
 protected:
  void SetUp() override {
    Queries::SetUp();
    ASSERT_GOOD(cuMemCreate(&memory_, piece, &properties_, 0));
    ASSERT_GOOD(map_memory(&address_, memory_, 0));
    ASSERT_GOOD(cuMemExportToShareableHandle(&file_, memory_, descriptors, 0));
  }
  void TearDown() override {
    drop_memory();
    if (file_ >= 0) ::close(file_);
    Queries::TearDown();
  }

  void drop_memory() {
    if (address_ == 0) return;
    EXPECT_GOOD(unmap_memory(address_));
    EXPECT_GOOD(cuMemRelease(memory_));
    address_ = 0;
  }

  const CUmemAllocationProp properties_ = shareable(0);
  CUmemGenericAllocationHandle memory_ = 0;
  CUdeviceptr address_ = 0;
  int file_ = -1;
};

TEST_F(SharedMemory, IsAFeatureOfDevices) {
  int supported = 0;
  EXPECT_GOOD(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
  EXPECT_EQ(supported, 1);
  unsigned types = 0;
  EXPECT_GOOD(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, address_));
  EXPECT_EQ(types, unsigned{descriptors});
  EXPECT_EQ(::fcntl(file_, F_GETFD), FD_CLOEXEC);
}

TEST_F(SharedMemory, HasTwoAddressesAfterAnImport) {
  CUmemGenericAllocationHandle again = 0;
  ASSERT_GOOD(open_memory(&again, file_));
  CUmemAllocationProp told{};
  EXPECT_GOOD(cuMemGetAllocationPropertiesFromHandle(&told, again));
  EXPECT_EQ(told.type, properties_.type);
  EXPECT_EQ(told.location.type, properties_.location.type);
  EXPECT_EQ(told.location.id, properties_.location.id);
  EXPECT_EQ(told.requestedHandleTypes, descriptors);
  CUdeviceptr second = 0;
  ASSERT_GOOD(map_memory(&second, again, 0));
  EXPECT_NE(second, address_);
  EXPECT_GOOD(cuMemsetD32(address_, 40, words_of_piece));
  EXPECT_GOOD(add_to_memory(second, 2));
  EXPECT_EQ(words_in_memory(address_), all(42));
  const std::vector<std::uint32_t> written = all(7);
  EXPECT_GOOD(cuMemcpyHtoD(second, written.data(), piece));
  EXPECT_GOOD(add_to_memory(address_, 1));
  EXPECT_EQ(words_in_memory(second), all(8));
  drop_memory();
  EXPECT_EQ(words_in_memory(second), all(8));
  EXPECT_GOOD(cuMemRelease(again));
  EXPECT_EQ(words_in_memory(second), all(8));
  EXPECT_GOOD(unmap_memory(second));
}

TEST_F(SharedMemory, LivesAsLongAsItsDescriptor) {
  EXPECT_GOOD(cuMemsetD32(address_, 9, words_of_piece));
  drop_memory();
  for (int round = 0; round < 2; ++round) {
    CUmemGenericAllocationHandle again = 0;
    ASSERT_GOOD(open_memory(&again, file_));
    CUdeviceptr mapped = 0;
    ASSERT_GOOD(map_memory(&mapped, again, 0));
    EXPECT_EQ(words_in_memory(mapped), all(9 + round));
    EXPECT_GOOD(add_to_memory(mapped, 1));
    EXPECT_GOOD(unmap_memory(mapped));
    EXPECT_GOOD(cuMemRelease(again));
  }
}

TEST_F(SharedMemory, IsPartOfALargerRange) {
  CUmemAllocationProp own = properties_;
  own.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  CUmemGenericAllocationHandle not_shared = 0;
  ASSERT_GOOD(cuMemCreate(&not_shared, piece, &own, 0));
  CUdeviceptr range = 0;
  ASSERT_GOOD(cuMemAddressReserve(&range, 3 * piece, 0, 0, 0));
  EXPECT_GOOD(cuMemMap(range, piece, 0, not_shared, 0));
  EXPECT_GOOD(cuMemMap(range + piece, piece, 0, memory_, 0));
  const CUmemAccessDesc access{properties_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_GOOD(cuMemSetAccess(range, 2 * piece, &access, 1));
  EXPECT_GOOD(cuMemsetD32(range, 6, 2 * words_of_piece));
  EXPECT_GOOD(add_to_memory(range + piece / 2, 1));
  std::vector<std::uint32_t> wanted = all(6);
  std::fill_n(wanted.begin(), words_of_piece / 2, 7U);
  EXPECT_EQ(words_in_memory(address_), wanted);
  EXPECT_INVALID(cuMemsetD32(range + 2 * piece - 4, 1, 2));  // no memory is mapped behind these pieces
  EXPECT_GOOD(cuMemUnmap(range, 2 * piece));
  EXPECT_GOOD(cuMemAddressFree(range, 3 * piece));
  EXPECT_GOOD(cuMemRelease(not_shared));
}

TEST_F(SharedMemory, OccupiesTheDeviceOfTheProcessThatCreatedIt) {
  const std::size_t left = free_memory();
  CUmemGenericAllocationHandle again = 0, more = 0;
  ASSERT_GOOD(open_memory(&again, file_));
  EXPECT_EQ(free_memory(), left);
  ASSERT_GOOD(cuMemCreate(&more, 4 * piece, &properties_, 0));
  EXPECT_EQ(free_memory(), left - 4 * piece);
  EXPECT_GOOD(cuMemRelease(more));
  EXPECT_EQ(free_memory(), left);
  EXPECT_EQ(cuMemCreate(&more, left + piece, &properties_, 0), CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr range = 0;
  EXPECT_GOOD(cuMemAddressReserve(&range, 4 * left, 0, 0, 0));  // addresses are not memory
  EXPECT_EQ(free_memory(), left);
  EXPECT_GOOD(cuMemAddressFree(range, 4 * left));
  EXPECT_GOOD(cuMemRelease(again));
}

/// The reasons of failures are in the log if the process starts with this level.
class LoggedSharedMemory : public SharedMemory {
 protected:
  void SetUp() override {
    ASSERT_EQ(::setenv("HPE_LOG", "info", 1), 0);
    SharedMemory::SetUp();
  }
};

TEST_F(LoggedSharedMemory, RefusesWrongInput) {
  CUmemGenericAllocationHandle made = 0;
  const auto told_by = [](const auto& call) {
    testing::internal::CaptureStderr();
    EXPECT_INVALID(call());
    return testing::internal::GetCapturedStderr();
  };
  const auto refused = [&](int descriptor, const char* words) {
    const std::string told = told_by([&] { return open_memory(&made, descriptor); });
    EXPECT_NE(told.find(words), std::string::npos) << told;
  };
  const int closed = ::fcntl(file_, F_DUPFD_CLOEXEC, 500);  // not the number of the next file that is opened
  ::close(closed);
  refused(closed, "no file is open under this number");
  refused(-1, "no file is open under this number");
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  refused(null, "does not contain memory of cuMemCreate");
  ::close(null);
  const int foreign = ::memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(foreign, piece + 4096), 0);
  refused(foreign, "does not contain memory of cuMemCreate");
  std::array<char, 4096> page{};
  ASSERT_EQ(::pread(file_, page.data(), page.size(), piece), static_cast<ssize_t>(page.size()));
  ASSERT_EQ(::pwrite(foreign, page.data(), page.size(), piece), static_cast<ssize_t>(page.size()));
  refused(foreign, "the size of the file is wrong");  // another process could make the file shorter
  ::close(foreign);
  EXPECT_INVALID(cuMemImportFromShareableHandle(nullptr, nullptr, descriptors));
  EXPECT_INVALID(cuMemImportFromShareableHandle(&made, nullptr, CU_MEM_HANDLE_TYPE_NONE));
  EXPECT_EQ(cuMemImportFromShareableHandle(&made, nullptr, CU_MEM_HANDLE_TYPE_FABRIC), CUDA_ERROR_NOT_SUPPORTED);

  int file = -1;
  EXPECT_INVALID(cuMemExportToShareableHandle(nullptr, memory_, descriptors, 0));
  EXPECT_INVALID(cuMemExportToShareableHandle(&file, memory_, descriptors, 1));
  EXPECT_INVALID(cuMemExportToShareableHandle(&file, 999, descriptors, 0));
  EXPECT_INVALID(cuMemExportToShareableHandle(&file, memory_, static_cast<CUmemAllocationHandleType>(3), 0));
  EXPECT_EQ(cuMemExportToShareableHandle(&file, memory_, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_NOT_SUPPORTED);
  CUmemAllocationProp own = properties_;
  own.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  EXPECT_EQ(cuMemCreate(&made, piece, &own, 0), CUDA_ERROR_NOT_SUPPORTED);
  own.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  ASSERT_GOOD(cuMemCreate(&made, piece, &own, 0));
  const std::string told = told_by([&] { return cuMemExportToShareableHandle(&file, made, descriptors, 0); });
  EXPECT_NE(told.find("requestedHandleTypes"), std::string::npos) << told;
  EXPECT_EQ(file, -1);
  EXPECT_GOOD(cuMemRelease(made));
  ASSERT_GOOD(open_memory(&made, file_));
  CUdeviceptr range = 0;
  ASSERT_GOOD(cuMemAddressReserve(&range, 2 * piece, 0, 0, 0));
  EXPECT_INVALID(cuMemMap(range, 2 * piece, 0, made, 0));  // more than the memory has
  EXPECT_GOOD(cuMemAddressFree(range, 2 * piece));
  EXPECT_GOOD(cuMemRelease(made));
}

TEST_F(SharedMemory, IsOneMemoryForTwoProcesses) {
  EXPECT_GOOD(cuMemsetD32(address_, 1, words_of_piece));
  EXPECT_GOOD(add_to_memory(address_, 10));
  other_process other;
  ASSERT_GOOD(other.tell(order::kind::open, 0, file_));
  EXPECT_GOOD(other.tell(order::kind::check, 11));
  EXPECT_GOOD(other.tell(order::kind::add, 5));
  EXPECT_EQ(words_in_memory(address_), all(16));
  EXPECT_GOOD(other.tell(order::kind::fill, 20));
  EXPECT_GOOD(add_to_memory(address_, 1));
  EXPECT_GOOD(other.tell(order::kind::check, 21));
  const std::vector<std::uint32_t> written = all(30);
  EXPECT_GOOD(cuMemcpyHtoD(address_, written.data(), piece));
  EXPECT_GOOD(other.tell(order::kind::add, 3));
  EXPECT_EQ(words_in_memory(address_), all(33));
  drop_memory();
  ::close(file_);
  file_ = -1;
  EXPECT_GOOD(other.tell(order::kind::check, 33));
  EXPECT_GOOD(other.tell(order::kind::drop));
}

TEST_F(SharedMemory, OutlivesTheProcessThatCreatedIt) {
  other_process other;
  ASSERT_GOOD(other.tell(order::kind::create));
  const int descriptor = other.descriptor();
  EXPECT_GOOD(other.tell(order::kind::fill, 70));
  EXPECT_GOOD(other.tell(order::kind::add, 7));
  other.end();
  CUmemGenericAllocationHandle memory = 0;
  ASSERT_GOOD(open_memory(&memory, descriptor));
  ::close(descriptor);
  CUdeviceptr mapped = 0;
  ASSERT_GOOD(map_memory(&mapped, memory, 0));
  EXPECT_EQ(words_in_memory(mapped), all(77));
  EXPECT_GOOD(unmap_memory(mapped));
  EXPECT_GOOD(cuMemRelease(memory));
}

TEST_F(SharedMemory, ComesWithAnInheritedDescriptor) {
  EXPECT_GOOD(cuMemsetD32(address_, 4, words_of_piece));
  ASSERT_EQ(::fcntl(file_, F_SETFD, 0), 0);
  other_process other;
  ASSERT_GOOD(other.tell(order::kind::open_inherited, static_cast<std::uint32_t>(file_)));
  EXPECT_GOOD(other.tell(order::kind::add, 1));
  EXPECT_EQ(words_in_memory(address_), all(5));
}

}  // namespace
