// Neighbouring mappings that the same devices may use are one allocation in the memory table, because copies may cross
// the borders of mappings, but not the borders of allocations.

#include "interpose/soft/libcuda/memory/virtual_memory_management.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "hpe/announce.h"
#include "hpe/hpe.h"
#include "hpe/map.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/memory/memory_table.h"
#include "interpose/soft/libcuda/call.h"

namespace hpe::libcuda {

using cudart::check;
using cudart::failure;
using cudart::process;
using cudart::require;

namespace {

bool is_whole(std::size_t bytes) { return bytes > 0 && bytes % virtual_memory::granularity == 0; }

[[noreturn]] void refuse_handle_type() {
  throw failure(
      cudaErrorNotSupported,
      "soft devices export mapped memory only as file descriptors (CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)");
}

/// Throws cudaErrorInvalidValue for a value that is no type of handles, and cudaErrorNotSupported for a type that soft
/// devices do not have.
void require_descriptors(CUmemAllocationHandleType type) {
  if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return;
  require(type == CU_MEM_HANDLE_TYPE_WIN32 || type == CU_MEM_HANDLE_TYPE_WIN32_KMT || type == CU_MEM_HANDLE_TYPE_FABRIC,
          cudaErrorInvalidValue);
  refuse_handle_type();
}

void require_device(const CUmemLocation& location) {
  // Soft devices do not support mapped memory on the host.
  require(location.type == CU_MEM_LOCATION_TYPE_DEVICE, cudaErrorNotSupported);
  process().devices().require_device(location.id);
}

}  // namespace

virtual_memory& virtual_memory::of_process() {
  static auto* const only = new virtual_memory;
  return *only;
}

CUdeviceptr virtual_memory::reserve(std::size_t bytes, std::size_t alignment) {
  const std::size_t aligned = std::max(alignment, granularity);
  require(is_whole(bytes) && (aligned & (aligned - 1)) == 0 && bytes <= SIZE_MAX - aligned, cudaErrorInvalidValue);
  reservation made;
  made.size = bytes;
  check(::hpeReserve(&made.addresses, bytes + (aligned - granularity)));
  const auto base = (reinterpret_cast<CUdeviceptr>(made.addresses) + aligned - 1) / aligned * aligned;
  const lock_guard lock(mutex_);
  reservations_.emplace(base, std::move(made));
  return base;
}

void virtual_memory::free(CUdeviceptr base, std::size_t bytes) {
  const lock_guard lock(mutex_);
  const auto found = reservations_.find(base);
  require(found != reservations_.end() && found->second.size == bytes && found->second.mappings.empty(),
          cudaErrorInvalidValue);
  check(::hpeFreeFinished(found->second.addresses));
  reservations_.erase(found);
}

CUmemGenericAllocationHandle virtual_memory::create(std::size_t bytes, const CUmemAllocationProp& properties) {
  require(is_whole(bytes) && properties.type == CU_MEM_ALLOCATION_TYPE_PINNED, cudaErrorInvalidValue);
  if ((properties.requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) refuse_handle_type();
  require_device(properties.location);
  return enter(std::make_shared<object>(bytes, properties));
}

CUmemGenericAllocationHandle virtual_memory::open(int descriptor) {
  return enter(std::make_shared<object>(descriptor));
}

CUmemGenericAllocationHandle virtual_memory::enter(pointer made) {
  const lock_guard lock(mutex_);
  objects_.emplace(++made_, std::move(made));
  return made_;
}

int virtual_memory::descriptor(CUmemGenericAllocationHandle handle) {
  const lock_guard lock(mutex_);
  return find(handle)->memory.descriptor();
}

virtual_memory::pointer virtual_memory::find(CUmemGenericAllocationHandle handle) {
  const auto found = objects_.find(handle);
  require(found != objects_.end(), cudaErrorInvalidValue);
  return found->second;
}

void virtual_memory::release(CUmemGenericAllocationHandle handle) {
  const lock_guard lock(mutex_);
  if (--find(handle)->handles == 0) objects_.erase(handle);
}

CUmemGenericAllocationHandle virtual_memory::retain(CUdeviceptr address) {
  const lock_guard lock(mutex_);
  const mapping& found = mapping_at(address);
  for (const auto& [handle, each] : objects_) {
    if (each != found.what) continue;
    ++each->handles;
    return handle;
  }
  found.what->handles = 1;
  objects_.emplace(++made_, found.what);
  return made_;
}

CUmemAllocationProp virtual_memory::properties(CUmemGenericAllocationHandle handle) {
  const lock_guard lock(mutex_);
  return find(handle)->memory.properties();
}

std::pair<const CUdeviceptr, virtual_memory::reservation>& virtual_memory::around(CUdeviceptr address,
                                                                                  std::size_t bytes) {
  const auto after = reservations_.upper_bound(address);
  require(after != reservations_.begin(), cudaErrorInvalidValue);
  auto& found = *std::prev(after);
  const std::size_t offset = address - found.first;
  require(offset <= found.second.size && bytes <= found.second.size - offset, cudaErrorInvalidValue);
  return found;
}

const virtual_memory::mapping& virtual_memory::mapping_at(CUdeviceptr address) {
  reservation& in = around(address, 1).second;
  const auto after = in.mappings.upper_bound(address);
  require(after != in.mappings.begin(), cudaErrorInvalidValue);
  const auto& [at, found] = *std::prev(after);
  require(address < at + found.size, cudaErrorInvalidValue);
  return found;
}

std::vector<std::map<CUdeviceptr, virtual_memory::mapping>::iterator> virtual_memory::whole_mappings(
    reservation& in, CUdeviceptr address, std::size_t bytes) {
  std::vector<std::map<CUdeviceptr, mapping>::iterator> found;
  const CUdeviceptr end = address + bytes;
  for (CUdeviceptr at = address; at < end; at += found.back()->second.size) {
    const auto each = in.mappings.find(at);
    require(each != in.mappings.end() && each->second.size <= end - at, cudaErrorInvalidValue);
    found.push_back(each);
  }
  return found;
}

void virtual_memory::enter_again(reservation& changed) {
  for (const void* const base : changed.entered) process().memory().remove(base);
  changed.entered.clear();
  for (auto first = changed.mappings.begin(); first != changed.mappings.end();) {
    CUdeviceptr end = first->first + first->second.size;
    auto next = std::next(first);
    for (; next != changed.mappings.end() && next->first == end && next->second.devices == first->second.devices;
         ++next)
      end += next->second.size;
    if (first->second.devices != 0) {
      void* const base = pointer_of(first->first);
      process().memory().add({.base = base,
                              .size = end - first->first,
                              .kind = cudart::allocation_kind::mapped,
                              .device = first->second.what->memory.properties().location.id,
                              .flags = first->second.devices});
      changed.entered.push_back(base);
    }
    first = next;
  }
}

void virtual_memory::map(CUdeviceptr address, std::size_t bytes, CUmemGenericAllocationHandle handle) {
  const lock_guard lock(mutex_);
  reservation& in = around(address, bytes).second;
  const pointer what = find(handle);
  require(is_whole(bytes) && bytes <= what->memory.size() && address % granularity == 0, cudaErrorInvalidValue);
  const auto after = in.mappings.lower_bound(address);
  const bool is_free =
      (after == in.mappings.end() || after->first >= address + bytes) &&
      (after == in.mappings.begin() || std::prev(after)->first + std::prev(after)->second.size <= address);
  require(is_free, cudaErrorInvalidValue);
  what->memory.map(address, bytes);
  in.mappings[address] = {bytes, what, 0};
}

void virtual_memory::unmap(CUdeviceptr address, std::size_t bytes) {
  process().finish_work();
  const lock_guard lock(mutex_);
  reservation& in = around(address, bytes).second;
  std::vector<pointer> unmapped;  // destroyed after their memory has been unmapped
  for (const auto each : whole_mappings(in, address, bytes)) {
    unmapped.push_back(std::move(each->second.what));
    in.mappings.erase(each);
  }
  enter_again(in);
  if (bytes != 0) check(::hpeUnmapFile(pointer_of(address), bytes));
}

void virtual_memory::set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc& who) {
  require_device(who.location);
  const unsigned device = 1U << who.location.id;
  const lock_guard lock(mutex_);
  reservation& in = around(address, bytes).second;
  for (const auto each : whole_mappings(in, address, bytes)) {
    unsigned& devices = each->second.devices;
    devices = who.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? devices & ~device : devices | device;
  }
  enter_again(in);
}

bool virtual_memory::may_access(CUdeviceptr address, int device) {
  const lock_guard lock(mutex_);
  return (mapping_at(address).devices >> device & 1U) != 0;
}

CUmemAllocationHandleType virtual_memory::handle_types(CUdeviceptr address) {
  const lock_guard lock(mutex_);
  return mapping_at(address).what->memory.properties().requestedHandleTypes;
}

}  // namespace hpe::libcuda

using namespace hpe::libcuda;
using hpe::cudart::require;

namespace {

virtual_memory& mapped() { return virtual_memory::of_process(); }

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                                               CUmemAllocationGranularity_flags option) {
  return call("cuMemGetAllocationGranularity", [&] {
    require(properties != nullptr && option <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, cudaErrorInvalidValue);
    given(bytes) = virtual_memory::granularity;
  });
}

/// Ignores the requested address, which is only a hint: hpe chooses the addresses of its memory itself.
CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* base, std::size_t bytes, std::size_t alignment, CUdeviceptr /*wish*/,
                                     unsigned long long flags) {
  return call("cuMemAddressReserve", [&] {
    require(base != nullptr && flags == 0, cudaErrorInvalidValue);
    *base = mapped().reserve(bytes, alignment);
  });
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr base, std::size_t bytes) {
  return call("cuMemAddressFree", [&] { mapped().free(base, bytes); });
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* made, std::size_t bytes,
                             const CUmemAllocationProp* properties, unsigned long long flags) {
  return call("cuMemCreate", [&] {
    require(made != nullptr && flags == 0, cudaErrorInvalidValue);
    *made = mapped().create(bytes, given(properties));
  });
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
  return call("cuMemRelease", [&] { mapped().release(handle); });
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return call("cuMemRetainAllocationHandle",
              [&] { given(handle) = mapped().retain(reinterpret_cast<CUdeviceptr>(address)); });
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                        CUmemGenericAllocationHandle handle) {
  return call("cuMemGetAllocationPropertiesFromHandle", [&] { given(properties) = mapped().properties(handle); });
}

/// Writes an int to `handle`: a descriptor, which the program owns.
CUresult CUDAAPI cuMemExportToShareableHandle(void* handle, CUmemGenericAllocationHandle memory,
                                              CUmemAllocationHandleType type, unsigned long long flags) {
  return call("cuMemExportToShareableHandle", [&] {
    require(handle != nullptr && flags == 0, cudaErrorInvalidValue);
    require_descriptors(type);
    *static_cast<int*>(handle) = mapped().descriptor(memory);
  });
}

/// `handle` is a descriptor, converted to a pointer. After the call, the program may close the descriptor.
CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* memory, void* handle,
                                                CUmemAllocationHandleType type) {
  return call("cuMemImportFromShareableHandle", [&] {
    require(memory != nullptr, cudaErrorInvalidValue);
    require_descriptors(type);
    *memory = mapped().open(static_cast<int>(reinterpret_cast<std::intptr_t>(handle)));
  });
}

CUresult CUDAAPI cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return call("cuMemMap", [&] {
    require(offset == 0 && flags == 0, cudaErrorInvalidValue);
    mapped().map(address, bytes, handle);
  });
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  return call("cuMemUnmap", [&] { mapped().unmap(address, bytes); });
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* list,
                                std::size_t count) {
  return call("cuMemSetAccess", [&] {
    require(list != nullptr && count > 0, cudaErrorInvalidValue);
    for (std::size_t i = 0; i < count; ++i) mapped().set_access(address, bytes, list[i]);
  });
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  return call("cuMemGetAccess", [&] {
    require(given(location).type == CU_MEM_LOCATION_TYPE_DEVICE, cudaErrorInvalidValue);
    const bool may = mapped().may_access(address, location->id);
    given(flags) = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  });
}
}
