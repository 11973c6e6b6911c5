// The file of an object that processes share contains the object's bytes and, after them, a page with the description
// of the object. Seals guarantee that no process can change the size of the file. The objects that processes do not
// share are parts of one file, because a program may create more objects than it may open files.

#include "interpose/soft/libcuda/memory/object_memory.h"

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "hpe/announce.h"
#include "hpe/hpe.h"
#include "hpe/map.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/memory/pool_table.h"
#include "interpose/soft/cudart/spread/soft_spreading.h"
#include "interpose/soft/libcuda/call.h"
#include "interpose/soft/libcuda/memory/virtual_memory_management.h"

namespace hpe::libcuda {

using cudart::check;
using cudart::failure;
using cudart::process;

namespace {

constexpr std::size_t page = 4096;
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

struct description {
  char format[24] = "hpe CUDA mapped memory";
  std::uint64_t size = 0;
  std::int32_t device = 0;
  std::uint32_t usage = 0;
  std::uint32_t is_rdma_capable = 0;
};
static_assert(sizeof(description) <= page);

[[noreturn]] void refuse(int file, const char* why) {
  throw failure(
      cudaErrorInvalidValue,
      fmt::format("the file descriptor {} is not a descriptor of cuMemExportToShareableHandle: {}", file, why));
}

[[noreturn]] void throw_system_error(const char* what) {
  throw failure(cudaErrorOperatingSystem, fmt::format("{} failed: {}", what, std::strerror(errno)));
}

description read_description(int file) {
  struct stat about {};
  if (::fstat(file, &about) != 0) refuse(file, "no file is open under this number");
  description found;
  const auto end = static_cast<std::size_t>(about.st_size);
  const bool has_description =
      S_ISREG(about.st_mode) && end > page &&
      ::pread(file, &found, sizeof found, static_cast<off_t>(end - page)) == static_cast<ssize_t>(sizeof found) &&
      std::memcmp(found.format, description{}.format, sizeof found.format) == 0;
  if (!has_description) refuse(file, "the file does not contain memory of cuMemCreate");
  if (found.size != end - page || found.size % virtual_memory::granularity != 0 || ::fcntl(file, F_GET_SEALS) != seals)
    refuse(file, "the size of the file is wrong");
  return found;
}

/// Allocates device memory that no code touches.
void* occupy(std::size_t bytes, int device) {
  void* made = nullptr;
  hpeStatus status = cudart::allocate_device_memory(&made, bytes, device);
  if (status == HPE_ERROR_OUT_OF_MEMORY) {
    process().pools().release_all();
    status = cudart::allocate_device_memory(&made, bytes, device);
  }
  check(status);
  return made;
}

int copy_of(int file) {
  const int made = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (made < 0) throw_system_error("the duplication of a file descriptor");
  return made;
}

}  // namespace

/// The bytes of an object: a file of its own, or a part of the file of this process.
class object_memory::file {
 public:
  /// Takes a file that contains only this object, and closes it.
  explicit file(int number) : number_(number) {}
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  ~file() {
    if (bytes_of_part_ == 0)
      ::close(number_);
    else
      ::fallocate(number_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_),
                  static_cast<off_t>(bytes_of_part_));
  }

  /// Creates a file that processes can share.
  static std::unique_ptr<file> make_shared(const description& of) {
    const int number = ::memfd_create("hpe-cuda-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (number < 0) throw_system_error("memfd_create");
    auto made = std::make_unique<file>(number);
    const bool is_ready =
        ::ftruncate(number, static_cast<off_t>(of.size + page)) == 0 &&
        ::pwrite(number, &of, sizeof of, static_cast<off_t>(of.size)) == static_cast<ssize_t>(sizeof of) &&
        ::fcntl(number, F_ADD_SEALS, seals) == 0;
    if (!is_ready) throw_system_error("the creation of a memory file");
    return made;
  }

  /// Makes the file of this process longer by a part. No two parts, freed ones included, have the same bytes of the
  /// file.
  static std::unique_ptr<file> make_part(std::size_t bytes) {
    static std::mutex mutex;
    static int number = -1;
    static std::uint64_t end = 0;
    const std::scoped_lock lock(mutex);
    if (number < 0 && (number = ::memfd_create("hpe-cuda-objects", MFD_CLOEXEC)) < 0)
      throw_system_error("memfd_create");
    if (::ftruncate(number, static_cast<off_t>(end + bytes)) != 0) throw_system_error("ftruncate of a memory file");
    return std::unique_ptr<file>(new file(number, std::exchange(end, end + bytes), bytes));
  }

  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

 private:
  file(int number, std::uint64_t offset, std::size_t bytes) : number_(number), offset_(offset), bytes_of_part_(bytes) {}

  const int number_;
  const std::uint64_t offset_ = 0;
  const std::size_t bytes_of_part_ = 0;  // 0: the whole file is this object's
};

object_memory::object_memory(std::size_t bytes, const CUmemAllocationProp& properties)
    : size_(bytes), properties_(properties), occupied_(occupy(bytes, properties.location.id)) {
  if (properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE) {
    file_ = file::make_part(bytes);
  } else {
    description of;
    of.size = bytes;
    of.device = properties.location.id;
    of.usage = properties.allocFlags.usage;
    of.is_rdma_capable = properties.allocFlags.gpuDirectRDMACapable;
    file_ = file::make_shared(of);
  }
}

object_memory::object_memory(int descriptor) {
  const description of = read_description(descriptor);
  if (of.device < 0 || of.device >= process().devices().count())
    throw failure(cudaErrorInvalidDevice,
                  fmt::format("the memory is on device {} of the process that exported it, but this process has {} "
                              "devices",
                              of.device, process().devices().count()));
  size_ = of.size;
  properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties_.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties_.location.id = of.device;
  properties_.allocFlags.usage = static_cast<unsigned short>(of.usage);
  properties_.allocFlags.gpuDirectRDMACapable = static_cast<unsigned char>(of.is_rdma_capable);
  file_ = std::make_unique<file>(copy_of(descriptor));
}

object_memory::~object_memory() = default;

void object_memory::freed::operator()(void* allocation) const noexcept { ::hpeFreeFinished(allocation); }

int object_memory::descriptor() const {
  if (properties_.requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    throw failure(cudaErrorInvalidValue,
                  "the memory was created without CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR in requestedHandleTypes, so "
                  "it cannot be exported");
  return copy_of(file_->number());
}

void object_memory::map(CUdeviceptr address, std::size_t bytes) const {
  check(::hpeMapFile(pointer_of(address), bytes, file_->number(), file_->offset()));
}

}  // namespace hpe::libcuda
