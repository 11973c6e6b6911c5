// Invariant: a segment of the UVAS in which something is mapped is reserved with the driver, and stays so. The driver
// reserves only what the host has not mapped, so the runtime's own placeholder goes away first; the driver puts one of
// its own there, over which host views are mapped.
#include "runtime/device/cuda/device_memory.h"

#include <sys/mman.h>

#include <mutex>

#include "runtime/base/error.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::cuda {

namespace {

CUmemLocation location_of(CUdevice device) {
  CUmemLocation result{};
  result.type = CU_MEM_LOCATION_TYPE_DEVICE;
  result.id = device;
  return result;
}

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): addresses come from the layout
}

}  // namespace

device_memory::device_memory(const driver& cu, const uvas_layout& layout)
    : cu_(cu), layout_(layout), reserved_(layout.segments) {}

device_memory::~device_memory() {
  for (const auto& [begin, it] : mappings_) {
    cu_.cuMemUnmap(begin, it.end - begin);
    cu_.cuMemRelease(it.memory);
  }
  for (unsigned s = 0; s < layout_.segments; ++s)
    if (reserved_[s]) cu_.cuMemAddressFree(layout_.base + s * layout_.segment_size, layout_.segment_size);
}

void device_memory::require_free(std::uintptr_t address, std::size_t bytes) const {
  const auto after = mappings_.lower_bound(address);
  const bool hits_next = after != mappings_.end() && after->first < address + bytes;
  const bool hits_previous = after != mappings_.begin() && std::prev(after)->second.end > address;
  HPE_REQUIRE(!hits_next && !hits_previous, HPE_ERROR_INVALID_ARGUMENT,
              "a part of the {} bytes at {:#x} has memory behind it already", bytes, address);
}

void device_memory::reserve_around(std::uintptr_t address, std::size_t bytes) {
  const std::size_t size = layout_.segment_size;
  for (std::size_t s = (address - layout_.base) / size; s <= (address + bytes - 1 - layout_.base) / size; ++s) {
    if (reserved_[s]) continue;
    const std::uintptr_t begin = layout_.base + s * size;
    ::munmap(pointer(begin), size);
    CUdeviceptr got = 0;
    const CUresult result = cu_.cuMemAddressReserve(&got, size, 0, begin, 0);
    if (result == CUDA_SUCCESS && got == begin) {
      reserved_[s] = true;
      continue;
    }
    if (result == CUDA_SUCCESS) cu_.cuMemAddressFree(got, size);
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY,
              "the CUDA driver does not give the {} bytes of address space at {:#x} to a device ({}); HPE_ADDRESS_BASE "
              "can name another place",
              size, begin, result == CUDA_SUCCESS ? "they are in use" : cu_.words_for(result));
  }
}

void device_memory::map(std::uintptr_t address, std::size_t bytes, unsigned device, CUdevice home,
                        std::span<const CUdevice> users) {
  const std::unique_lock lock(mutex_);
  require_free(address, bytes);
  reserve_around(address, bytes);

  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location_of(home);
  mapping made{address + bytes, device, 0};
  const CUresult created = cu_.cuMemCreate(&made.memory, bytes, &properties, 0);
  if (created == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t free = 0;
    std::size_t total = 0;
    cu_.cuMemGetInfo(&free, &total);
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "device {} has {} bytes of memory left of {}; {} were asked for", device, free,
              total, bytes);
  }
  cu_.check(created, "creating device memory");
  CUresult result = cu_.cuMemMap(address, bytes, 0, made.memory, 0);
  if (result == CUDA_SUCCESS) {
    std::vector<CUmemAccessDesc> access;
    for (const CUdevice user : users) access.push_back({location_of(user), CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    result = cu_.cuMemSetAccess(address, bytes, access.data(), access.size());
    if (result != CUDA_SUCCESS) cu_.cuMemUnmap(address, bytes);
  }
  if (result != CUDA_SUCCESS) {
    cu_.cuMemRelease(made.memory);
    cu_.fail(result, "mapping device memory");
  }
  mappings_.emplace(address, made);
}

void device_memory::unmap(std::uintptr_t address, std::size_t bytes, unsigned device) {
  const std::unique_lock lock(mutex_);
  const auto first = mappings_.find(address);
  auto last = first;
  std::uintptr_t at = address;
  for (; last != mappings_.end() && last->first == at && at < address + bytes && last->second.device == device; ++last)
    at = last->second.end;
  HPE_REQUIRE(at == address + bytes, HPE_ERROR_INVALID_ARGUMENT,
              "the {} bytes at {:#x} are not one or several whole ranges that were mapped for device {}", bytes,
              address, device);
  for (auto it = first; it != last; it = mappings_.erase(it)) {
    // What fails here belongs to a lost device.
    cu_.cuMemUnmap(it->first, it->second.end - it->first);
    cu_.cuMemRelease(it->second.memory);
  }
}

std::optional<device_memory::piece> device_memory::find(std::uintptr_t address) const {
  const std::shared_lock lock(mutex_);
  auto found = mappings_.upper_bound(address);
  if (found == mappings_.begin()) return std::nullopt;
  --found;
  if (address >= found->second.end) return std::nullopt;
  return piece{found->second.device, found->second.end};
}

}  // namespace hpe::device::cuda
