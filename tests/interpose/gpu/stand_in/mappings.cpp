// Mapped memory: allocations of a device, identified by handles, and ranges of addresses to which they are mapped. For
// each range, the stand-in has a second range that it can read. The bytes of an allocation are in a file, which is
// mapped at the same offset of the second range.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "tests/interpose/gpu/stand_in/machine.h"

namespace stand_in {

namespace {

struct allocation {
  int device = 0;
  int file = -1;
  std::size_t bytes = 0;
  bool is_on_host = false;
  unsigned users = 0;  // bit d: device d can access the mapping
};

std::mutex state;
std::map<CUmemGenericAllocationHandle, allocation>& allocations() {
  static auto* const all = new std::map<CUmemGenericAllocationHandle, allocation>;
  return *all;
}
std::map<CUdeviceptr, allocation>& mapped() {
  static auto* const all = new std::map<CUdeviceptr, allocation>;
  return *all;
}
std::size_t used_bytes[device_count];
std::size_t host_bytes = 0;
CUmemGenericAllocationHandle next_handle = 1000;

// Reserves and returns addresses: the wanted ones, or other addresses if these are in use.
void* reserve(std::size_t bytes, CUdeviceptr wanted = 0) {
  return ::mmap(reinterpret_cast<void*>(wanted),  // NOLINT(performance-no-int-to-ptr)
                bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

}  // namespace

std::size_t mapped_bytes(int device) {
  const std::lock_guard lock(state);
  return used_bytes[device];
}

// A thread first maps memory and then gives devices access to it. In between, a kernel can run that has a pointer to
// the memory, but uses only other bytes of the array. So this function waits until the memory has a user.
bool can_access(int device, CUdeviceptr address) {
  for (unsigned tries = 0;; ++tries) {
    constexpr unsigned most_tries = 2000;
    {
      const std::lock_guard lock(state);
      const auto next = mapped().upper_bound(address);
      if (next == mapped().begin()) return true;
      const auto& [begin, mapping] = *std::prev(next);
      if (address >= begin + mapping.bytes) return true;
      if (mapping.users != 0 || tries == most_tries) return (mapping.users >> static_cast<unsigned>(device) & 1U) != 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace stand_in

using namespace stand_in;  // NOLINT(google-build-using-namespace): this file is part of that namespace

STAND_IN CUresult cuMemAddressReserve(CUdeviceptr* made, std::size_t bytes, std::size_t, CUdeviceptr wanted,
                                      unsigned long long) {
  COUNT();
  REFUSE();
  *made = number_of(reserve(bytes, wanted));
  add_range(*made, bytes, static_cast<std::byte*>(reserve(bytes)));
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  COUNT();
  std::byte* const alias = memory_at(address);
  if (!remove_range(address)) return CUDA_ERROR_INVALID_VALUE;
  ::munmap(alias, bytes);
  ::munmap(reinterpret_cast<void*>(address), bytes);  // NOLINT(performance-no-int-to-ptr)
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuMemCreate(CUmemGenericAllocationHandle* made, std::size_t bytes, const CUmemAllocationProp* what,
                              unsigned long long) {
  COUNT();
  REFUSE();
  const std::lock_guard lock(state);
  const bool is_on_host = what->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  static const bool has_host_memory = std::getenv("STAND_IN_NO_HOST_MEMORY") == nullptr;
  if (is_on_host && !has_host_memory) return CUDA_ERROR_NOT_SUPPORTED;
  static const char* const most = std::getenv("STAND_IN_HOST_MEMORY");  // in bytes
  if (is_on_host && most != nullptr && host_bytes + bytes > std::strtoull(most, nullptr, 10))
    return CUDA_ERROR_OUT_OF_MEMORY;
  const int device = is_on_host ? 0 : what->location.id;
  if (!is_on_host && used_bytes[device] + bytes > memory_of_device) return CUDA_ERROR_OUT_OF_MEMORY;
  const int file = ::memfd_create("stand-in", MFD_CLOEXEC);
  if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  (is_on_host ? host_bytes : used_bytes[device]) += bytes;
  *made = ++next_handle;
  allocations()[*made] = {device, file, bytes, is_on_host, 0};
  return CUDA_SUCCESS;
}

// In the stand-in, an allocation ends with its handle, even if it is still mapped; its mapped bytes remain. hpe always
// unmaps first.
STAND_IN CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  COUNT();
  const std::lock_guard lock(state);
  const auto found = allocations().find(handle);
  if (found == allocations().end()) return CUDA_SUCCESS;  // a handle that the program imported
  (found->second.is_on_host ? host_bytes : used_bytes[found->second.device]) -= found->second.bytes;
  ::close(found->second.file);
  allocations().erase(found);
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t, CUmemGenericAllocationHandle handle,
                           unsigned long long) {
  COUNT();
  REFUSE();
  const std::lock_guard lock(state);
  const auto found = allocations().find(handle);
  if (found == allocations().end()) return is_device(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (bytes != found->second.bytes || is_device(address, 1)) return CUDA_ERROR_INVALID_VALUE;
  void* const at =
      ::mmap(memory_at(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, found->second.file, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_INVALID_VALUE;
  mapped()[address] = found->second;
  add_mapping(address, bytes, found->second.device);
  return CUDA_SUCCESS;
}

// Only unmaps whole mappings, like the driver: one mapping, or several neighbouring ones.
STAND_IN CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  COUNT();
  REFUSE();
  const std::lock_guard lock(state);
  const auto first = mapped().find(address);
  auto last = first;
  CUdeviceptr end = address;
  for (; last != mapped().end() && last->first == end && end < address + bytes; ++last) end += last->second.bytes;
  if (end != address + bytes || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  for (auto each = first; each != last; each = mapped().erase(each)) remove_mapping(each->first);
  ::mmap(memory_at(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return CUDA_SUCCESS;
}

// A range of memory of another process is no mapping here; every device can access it.
STAND_IN CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* users,
                                 std::size_t count) {
  COUNT();
  REFUSE();
  if (!is_device(address, bytes) || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(state);
  for (auto each = mapped().lower_bound(address); each != mapped().end() && each->first < address + bytes; ++each)
    for (std::size_t n = 0; n < count; ++n) each->second.users |= 1U << static_cast<unsigned>(users[n].location.id);
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  COUNT();
  context* c = nullptr;
  if (const CUresult wrong = current(c); wrong != CUDA_SUCCESS) return wrong;
  *total = memory_of_device;
  *free = memory_of_device - mapped_bytes(c->device);
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice) { return *bytes = memory_of_device, CUDA_SUCCESS; }
