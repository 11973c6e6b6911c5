// Registered and pinned memory: memory that the operating system or other processes use at the same time as kernels.

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "kernels.h"

namespace {

constexpr std::size_t page = 4096;

// Expects that hpe refuses a device address for `p`, and returns the message.
std::string refusal_of(void* p) {
  void* device = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cudaHostGetDevicePointer(&device, p, 0), cudaErrorNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
  EXPECT_EQ(device, nullptr);
  return testing::internal::GetCapturedStderr();
}

// Pages that the constructor maps and the destructor unmaps.
class mapped_pages {
 public:
  explicit mapped_pages(std::size_t count, int file = -1)
      : bytes_(count * page),
        data_(static_cast<char*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                        file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0))) {
    EXPECT_NE(data_, MAP_FAILED);
  }
  ~mapped_pages() { ::munmap(data_, bytes_); }
  mapped_pages(const mapped_pages&) = delete;
  mapped_pages& operator=(const mapped_pages&) = delete;
  [[nodiscard]] char* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  char* data_;
};

// A memory file that the destructor closes.
class memory_file {
 public:
  explicit memory_file(std::size_t bytes) : file_(::memfd_create("registered", 0)) {
    EXPECT_EQ(::ftruncate(file_, static_cast<off_t>(bytes)), 0);
  }
  ~memory_file() { ::close(file_); }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  [[nodiscard]] int descriptor() const { return file_; }

 private:
  int file_;
};

// An io_uring with the operations that the tests need: one read into a registered buffer at a time.
class ring {
 public:
  ring() : file_(static_cast<int>(::syscall(__NR_io_uring_setup, 4, &about_))) {
    if (!is_there()) return;
    const std::size_t bytes = about_.cq_off.cqes + about_.cq_entries * sizeof(io_uring_cqe);
    queue_ = static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, IORING_OFF_SQ_RING));
    entries_ = static_cast<io_uring_sqe*>(::mmap(nullptr, about_.sq_entries * sizeof(io_uring_sqe),
                                                 PROT_READ | PROT_WRITE, MAP_SHARED, file_, IORING_OFF_SQES));
  }
  ~ring() {
    if (is_there()) ::close(file_);
  }
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;
  [[nodiscard]] bool is_there() const { return file_ >= 0; }

  [[nodiscard]] bool add_buffer(void* begin, std::size_t bytes) const {
    const iovec buffer{begin, bytes};
    return ::syscall(__NR_io_uring_register, file_, IORING_REGISTER_BUFFERS, &buffer, 1) == 0;
  }

  int read(int from, void* to, unsigned bytes) {
    unsigned& tail = number(about_.sq_off.tail);
    const unsigned at = tail & number(about_.sq_off.ring_mask);
    entries_[at] = {};
    entries_[at].opcode = IORING_OP_READ_FIXED;
    entries_[at].fd = from;
    entries_[at].addr = reinterpret_cast<std::uintptr_t>(to);
    entries_[at].len = bytes;
    (&number(about_.sq_off.array))[at] = at;
    __atomic_store_n(&tail, tail + 1, __ATOMIC_RELEASE);
    if (::syscall(__NR_io_uring_enter, file_, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) < 0) return -1;
    unsigned& head = number(about_.cq_off.head);
    const auto* const results = reinterpret_cast<const io_uring_cqe*>(queue_ + about_.cq_off.cqes);
    const int result = results[head & number(about_.cq_off.ring_mask)].res;
    __atomic_store_n(&head, head + 1, __ATOMIC_RELEASE);
    return result;
  }

 private:
  unsigned& number(unsigned offset) { return *reinterpret_cast<unsigned*>(queue_ + offset); }

  io_uring_params about_{};
  int file_;
  char* queue_ = nullptr;
  io_uring_sqe* entries_ = nullptr;
};

TEST(Registered, ASharedMappingStaysOneAndHasNoDeviceAddress) {
  const memory_file file(2 * page);
  const mapped_pages one(2, file.descriptor()), other(2, file.descriptor());
  ASSERT_CUDA(cudaHostRegister(one.data(), one.size(), cudaHostRegisterMapped));
  const std::string told = refusal_of(one.data() + 8);
  EXPECT_NE(told.find("a shared mapping"), std::string::npos) << told;
  EXPECT_NE(told.find("cudaMallocHost"), std::string::npos) << told;
  one.data()[page + 7] = 77;
  EXPECT_EQ(other.data()[page + 7], 77);
  // Copies work in the same way as with other memory.
  const on_device<char> memory(one.size());
  EXPECT_CUDA(cudaMemset(memory.data(), 9, one.size()));
  EXPECT_CUDA(cudaMemcpy(one.data(), memory.data(), one.size(), cudaMemcpyDeviceToHost));
  EXPECT_EQ(other.data()[page + 7], 9);
  EXPECT_CUDA(cudaHostUnregister(one.data()));
  one.data()[9] = 99;
  EXPECT_EQ(other.data()[9], 99);
}

TEST(Registered, PagesThatCannotBeReplacedAreNamed) {
  const mapped_pages pages(3);
  ASSERT_CUDA(cudaHostRegister(pages.data() + 1, pages.size() - 2, cudaHostRegisterMapped));
  for (const int access : {PROT_NONE, PROT_READ}) {
    ASSERT_EQ(::mprotect(pages.data() + page, page, access), 0);
    refusal_of(pages.data() + 1);
  }
  ASSERT_EQ(::munmap(pages.data() + page, page), 0);
  refusal_of(pages.data() + 1);
  EXPECT_CUDA(cudaHostUnregister(pages.data() + 1));
  std::array<char, 64> on_stack{};
  ASSERT_CUDA(cudaHostRegister(on_stack.data(), on_stack.size(), cudaHostRegisterMapped));
  refusal_of(on_stack.data());
  EXPECT_CUDA(cudaHostUnregister(on_stack.data()));
}

TEST(Registered, BuffersOfIoUringKeepTheirPages) {
  ring of_system;
  if (!of_system.is_there()) GTEST_SKIP() << "io_uring is not allowed here";
  const memory_file file(page);
  const std::string content(page, 'x');
  ASSERT_EQ(::pwrite(file.descriptor(), content.data(), page, 0), static_cast<ssize_t>(page));
  const mapped_pages before(2), after(2);

  // If the program registers a buffer with io_uring before it requests a device address, hpe refuses the request.
  ASSERT_CUDA(cudaHostRegister(before.data(), before.size(), cudaHostRegisterMapped));
  ASSERT_TRUE(of_system.add_buffer(before.data() + page, page));
  refusal_of(before.data());
  EXPECT_EQ(of_system.read(file.descriptor(), before.data() + page, page), static_cast<int>(page));
  EXPECT_EQ(before.data()[page + 5], 'x');
  EXPECT_CUDA(cudaHostUnregister(before.data()));

  // If the program registers a buffer with io_uring after it has requested a device address, cudaHostUnregister does
  // not replace the buffer's pages.
  ring second;
  ASSERT_CUDA(cudaHostRegister(after.data(), after.size(), cudaHostRegisterMapped));
  void* device = nullptr;
  ASSERT_CUDA(cudaHostGetDevicePointer(&device, after.data(), 0));
  ASSERT_TRUE(second.add_buffer(after.data(), page));
  EXPECT_CUDA(cudaHostUnregister(after.data()));
  EXPECT_EQ(second.read(file.descriptor(), after.data(), page), static_cast<int>(page));
  EXPECT_EQ(after.data()[5], 'x');
}

// Lets the operating system write to memory by a call that hpe does not interpose.
bool system_writes(void* p) { return ::uname(static_cast<utsname*>(p)) == 0; }

TEST(Pinned, MemoryIsOpenBeforeTheFirstTouchAndAfterAKernel) {
  for (const std::size_t bytes : {std::size_t{1000}, std::size_t{1} << 20}) {
    void* pinned = nullptr;
    ASSERT_CUDA(cudaMallocHost(&pinned, bytes));
    EXPECT_TRUE(system_writes(pinned)) << bytes;
    std::memset(pinned, 0, bytes);
    EXPECT_TRUE(system_writes(pinned)) << bytes;
    void* arguments[] = {&pinned};
    ASSERT_CUDA(cudaLaunchKernel(kernel_store(), 1, 1, arguments, 0, nullptr));
    ASSERT_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(*static_cast<int*>(pinned), 1);
    ASSERT_CUDA(cudaLaunchKernel(kernel_store(), 1, 1, arguments, 0, nullptr));
    ASSERT_CUDA(cudaDeviceSynchronize());
    EXPECT_TRUE(system_writes(pinned)) << bytes;
    EXPECT_CUDA(cudaFreeHost(pinned));
  }
}

}  // namespace
