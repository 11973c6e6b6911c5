// The functions that allocate, free and query memory. As in CUDA, cudaFree waits for all work.

#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

#include "hpe/announce.h"
#include "interpose/soft/cudart/check/checked_memory.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/graph/graph_memory_table.h"
#include "interpose/soft/cudart/memory/ipc.h"
#include "interpose/soft/cudart/memory/pool_table.h"
#include "interpose/soft/cudart/spread/soft_spreading.h"
#include "interpose/soft/cudart/stream/capture.h"
#include "interpose/soft/cudart/stream/checked_work.h"
#include "interpose/soft/cudart/stream/cudart_stream.h"
#include "runtime/base/box.h"

using namespace hpe::cudart;

namespace {

constexpr std::size_t pitch_alignment = 512;

/// Allocates memory and adds it to the table. Returns null for zero bytes.
void* allocate(std::size_t bytes, allocation_kind kind, unsigned flags = 0) {
  const int device = process().current_device();
  process().captures().require_unsafe_calls_allowed();
  if (bytes == 0) return nullptr;
  void* made = nullptr;
  const auto try_to = [&] {
    if (kind == allocation_kind::host) return ::hpeMallocOpen(&made, bytes);
    return allocate_device_memory(&made, hpe::saturated_sum(bytes, bytes_behind_allocations()), device);
  };
  hpeStatus status = try_to();
  if (status == HPE_ERROR_OUT_OF_MEMORY) {
    process().pools().release_all();
    free_kept_memory();
    status = try_to();
  }
  check(status);
  if (kind == allocation_kind::device) static_cast<void>(fill_fresh_memory(made, bytes));
  process().memory().add({.base = made, .size = bytes, .kind = kind, .device = device, .flags = flags});
  return made;
}

/// Waits for all work and frees the allocation at `base`; has no effect if `base` is null. Throws cudaErrorInvalidValue
/// if no allocation begins at `base`, or if is_right(allocation) is false.
template <class Choice>
void release(void* base, const Choice& is_right) {
  process().captures().require_unsafe_calls_allowed();
  if (base == nullptr) return;
  const auto found = process().memory().find(base);
  require(found.has_value() && found->base == base && is_right(*found), cudaErrorInvalidValue);
  process().finish_work();
  require(process().memory().remove(base).has_value(), cudaErrorInvalidValue);
  process().ipc().forget(base);
  check(found->kind == allocation_kind::device ? free_device_memory(base, found->size) : ::hpeFreeFinished(base));
}

template <class T>
T& given(T* pointer) {
  require(pointer != nullptr, cudaErrorInvalidValue);
  return *pointer;
}

std::size_t padded(std::size_t width) {
  return hpe::saturated_sum(width, pitch_alignment - 1) / pitch_alignment * pitch_alignment;
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaMalloc(void** pointer, std::size_t bytes) {
  return api_call("cudaMalloc", [&] { given(pointer) = allocate(bytes, allocation_kind::device); });
}

cudaError_t CUDARTAPI cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  return api_call("cudaMallocPitch", [&] {
    given(pitch) = padded(width);
    given(pointer) = allocate(hpe::box_extent{*pitch, height, 1}.bytes(), allocation_kind::device);
  });
}

cudaError_t CUDARTAPI cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  return api_call("cudaMalloc3D", [&] {
    const std::size_t pitch = padded(extent.width);
    const std::size_t bytes = hpe::box_extent{pitch, extent.height, extent.depth}.bytes();
    given(pointer) = {allocate(bytes, allocation_kind::device), pitch, extent.width, extent.height};
  });
}

cudaError_t CUDARTAPI cudaMallocManaged(void** pointer, std::size_t bytes, unsigned flags) {
  return api_call("cudaMallocManaged", [&] {
    require(bytes > 0 && (flags == cudaMemAttachGlobal || flags == cudaMemAttachHost), cudaErrorInvalidValue);
    given(pointer) = allocate(bytes, allocation_kind::managed, flags);
    process().advice().forget(*pointer);
  });
}

cudaError_t CUDARTAPI cudaFree(void* pointer) {
  return api_call("cudaFree", [&] {
    if (process().graph_memory().find(pointer)) return;  // hpe frees the memory when its graph no longer exists
    if (process().pools().owns(pointer)) {
      process().finish_work();
      process().ipc().forget(pointer);
      process().pools().free(pointer);
      return;
    }
    if (process().ipc().has_opened(pointer, allocation_kind::pool)) {
      process().finish_work();
      process().ipc().close(pointer, allocation_kind::pool);
      return;
    }
    release(pointer, [](const cudart_allocation& each) {
      return each.kind == allocation_kind::device || each.kind == allocation_kind::managed;
    });
  });
}

cudaError_t CUDARTAPI cudaMallocHost(void** pointer, std::size_t bytes) {
  return api_call("cudaMallocHost",
                  [&] { given(pointer) = allocate(bytes, allocation_kind::host, cudaHostAllocMapped); });
}

cudaError_t CUDARTAPI cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return api_call("cudaHostAlloc", [&] {
    constexpr unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    require((flags & ~known) == 0, cudaErrorInvalidValue);
    given(pointer) = allocate(bytes, allocation_kind::host, flags | cudaHostAllocMapped);
  });
}

cudaError_t CUDARTAPI cudaFreeHost(void* pointer) {
  return api_call("cudaFreeHost", [&] {
    release(pointer, [](const cudart_allocation& each) { return each.kind == allocation_kind::host; });
  });
}

cudaError_t CUDARTAPI cudaHostGetFlags(unsigned* flags, void* pointer) {
  return api_call("cudaHostGetFlags", [&] {
    const auto found = process().memory().find(pointer);
    require(found.has_value() && !found->is_on_device(), cudaErrorInvalidValue);
    given(flags) = found->flags;
  });
}

cudaError_t CUDARTAPI cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  return api_call("cudaMemGetInfo", [&] {
    std::size_t all_free = 0, all = 0;
    for (const int device : process().devices().behind(process().current_device())) {
      hpeDeviceInfo info{};
      check(::hpeGetDeviceInfo(device, &info));
      all_free += info.memory_free;
      all += info.memory_total;
    }
    given(free_bytes) = all_free;
    given(total) = all;
  });
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return api_call("cudaPointerGetAttributes", [&] {
    given(attributes) = {};
    const auto found = process().memory().find_also_of_hpe(pointer);
    if (!found) {
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
      attributes->hostPointer = const_cast<void*>(pointer);
      return;
    }
    const auto offset = static_cast<const char*>(pointer) - static_cast<const char*>(found->base);
    attributes->type = found->is_managed()     ? cudaMemoryTypeManaged
                       : found->is_on_device() ? cudaMemoryTypeDevice
                                               : cudaMemoryTypeHost;
    attributes->device = found->device;
    if (found->kind != allocation_kind::registered || found->device_base != found->base) {
      attributes->devicePointer = static_cast<char*>(found->device_base) + offset;
    }
    if (attributes->type != cudaMemoryTypeDevice) attributes->hostPointer = const_cast<void*>(pointer);
  });
}
}
