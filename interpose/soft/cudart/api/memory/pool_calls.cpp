// The CUDA runtime's functions for memory pools and stream-ordered allocation.

#include <cuda_runtime_api.h>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/graph/graph_memory_table.h"
#include "interpose/soft/cudart/memory/ipc.h"
#include "interpose/soft/cudart/memory/pool_table.h"
#include "interpose/soft/cudart/stream/capture.h"

using namespace hpe::cudart;

namespace {

/// Returns the device of a location. Throws cudaErrorNotSupported for locations that are not devices, because hpe does
/// not support pools of host memory.
int device_of(const cudaMemLocation* location) {
  require(location != nullptr, cudaErrorInvalidValue);
  require(location->type == cudaMemLocationTypeDevice, cudaErrorNotSupported);
  process().devices().require_device(location->id);
  return location->id;
}

/// Whether the value of an attribute is a flag of type int; all other attributes are 64-bit numbers of bytes.
bool is_flag(cudaMemPoolAttr attribute) {
  return attribute == cudaMemPoolReuseFollowEventDependencies || attribute == cudaMemPoolReuseAllowOpportunistic ||
         attribute == cudaMemPoolReuseAllowInternalDependencies;
}

void* allocate(std::size_t bytes, cudaMemPool_t from, cudart_stream& where) {
  if (bytes == 0) return nullptr;
  const auto pool = process().pools().find(from);
  if (!where.capturing()) {
    require_not_capturing(where);
    return process().pools().allocate(pool, bytes, where);
  }
  cudaMemAllocNodeParams parameters{};
  parameters.poolProps.allocType = cudaMemAllocationTypePinned;
  parameters.poolProps.location = {cudaMemLocationTypeDevice, pool->device()};
  parameters.bytesize = bytes;
  check(submit(where, make_alloc(parameters)));
  return parameters.dptr;
}

void free(void* block, cudart_stream& where) {
  if (block == nullptr) return;
  if (where.capturing()) {
    check(submit(where, make_free(block)));
    return;
  }
  require_not_capturing(where);
  if (process().graph_memory().find(block)) return;  // hpe frees the memory when its graph no longer exists
  if (process().pools().owns(block)) {
    process().ipc().forget(block);  // other processes that have opened the memory can continue to use it
    process().pools().free(block, where);
    return;
  }
  check(where.synchronize());
  check(cudaFree(block));
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t handle) {
  return api_call(__func__, [&] {
    require(pointer != nullptr, cudaErrorInvalidValue);
    const auto where = process().find_stream(handle);
    *pointer = allocate(bytes, process().pools().current_of(where->device()), *where);
  });
}

cudaError_t CUDARTAPI cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t from, cudaStream_t handle) {
  return api_call(__func__, [&] {
    require(pointer != nullptr, cudaErrorInvalidValue);
    *pointer = allocate(bytes, from, *process().find_stream(handle));
  });
}

cudaError_t CUDARTAPI cudaFreeAsync(void* pointer, cudaStream_t handle) {
  return api_call(__func__, [&] { free(pointer, *process().find_stream(handle)); });
}

cudaError_t CUDARTAPI cudaMemPoolCreate(cudaMemPool_t* made, const cudaMemPoolProps* properties) {
  return api_call(__func__, [&] {
    require(made != nullptr && properties != nullptr, cudaErrorInvalidValue);
    require(properties->allocType == cudaMemAllocationTypePinned, cudaErrorInvalidValue);
    const bool is_shareable = properties->handleTypes == cudaMemHandleTypePosixFileDescriptor;
    require(is_shareable || properties->handleTypes == cudaMemHandleTypeNone, cudaErrorNotSupported);
    *made = process().pools().create(device_of(&properties->location), properties->maxSize,
                                     is_shareable ? std::optional(pool_key::make()) : std::nullopt);
  });
}

cudaError_t CUDARTAPI cudaMemPoolDestroy(cudaMemPool_t handle) {
  return api_call(__func__, [&] { process().pools().destroy(handle); });
}

cudaError_t CUDARTAPI cudaMemPoolTrimTo(cudaMemPool_t handle, size_t keep) {
  return api_call(__func__, [&] { process().pools().find(handle)->trim(keep); });
}

cudaError_t CUDARTAPI cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return api_call(__func__, [&] {
    require(value != nullptr, cudaErrorInvalidValue);
    const std::uint64_t number = process().pools().find(handle)->attribute(attribute);
    if (is_flag(attribute)) {
      *static_cast<int*>(value) = static_cast<int>(number);
    } else {
      *static_cast<std::uint64_t*>(value) = number;
    }
  });
}

cudaError_t CUDARTAPI cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return api_call(__func__, [&] {
    require(value != nullptr, cudaErrorInvalidValue);
    const std::uint64_t number = is_flag(attribute) ? static_cast<std::uint64_t>(*static_cast<const int*>(value))
                                                    : *static_cast<const std::uint64_t*>(value);
    process().pools().find(handle)->set_attribute(attribute, number);
  });
}

cudaError_t CUDARTAPI cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc* list, size_t count) {
  return api_call(__func__, [&] {
    require(list != nullptr || count == 0, cudaErrorInvalidValue);
    for (size_t i = 0; i < count; ++i) {
      const int device = device_of(&list[i].location);
      const int home = process().pools().find(handle)->device();
      const bool allowed = list[i].flags == cudaMemAccessFlagsProtReadWrite;
      require(allowed || list[i].flags == cudaMemAccessFlagsProtNone, cudaErrorInvalidValue);
      require(device != home || allowed, cudaErrorInvalidDevice);  // a device always has access to its own pool
      require(device == home || process().devices().can_reach(device, home), cudaErrorInvalidDevice);
      process().pools().set_access(handle, device, allowed);
    }
  });
}

cudaError_t CUDARTAPI cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t handle, cudaMemLocation* location) {
  return api_call(__func__, [&] {
    require(flags != nullptr, cudaErrorInvalidValue);
    const bool allowed = process().pools().access(handle, device_of(location));
    *flags = allowed ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
  });
}

cudaError_t CUDARTAPI cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return api_call(__func__, [&] {
    require(pool != nullptr, cudaErrorInvalidValue);
    process().devices().require_device(device);
    *pool = process().pools().default_of(device);
  });
}

cudaError_t CUDARTAPI cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return api_call(__func__, [&] {
    require(pool != nullptr, cudaErrorInvalidValue);
    process().devices().require_device(device);
    *pool = process().pools().current_of(device);
  });
}

cudaError_t CUDARTAPI cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return api_call(__func__, [&] {
    process().devices().require_device(device);
    process().pools().set_current(device, pool);
  });
}

cudaError_t CUDARTAPI cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                                               cudaMemAllocationType type) {
  return api_call(__func__, [&] {
    require(pool != nullptr && type == cudaMemAllocationTypePinned, cudaErrorInvalidValue);
    *pool = process().pools().default_of(device_of(location));
  });
}

cudaError_t CUDARTAPI cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
  return api_call(__func__, [&] {
    require(pool != nullptr && type == cudaMemAllocationTypePinned, cudaErrorInvalidValue);
    *pool = process().pools().current_of(device_of(location));
  });
}

cudaError_t CUDARTAPI cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type, cudaMemPool_t pool) {
  return api_call(__func__, [&] {
    require(type == cudaMemAllocationTypePinned, cudaErrorInvalidValue);
    process().pools().set_current(device_of(location), pool);
  });
}
}
