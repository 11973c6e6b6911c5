// The functions for allocations, and the functions that query the attributes of addresses.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/memory/memory_table.h"
#include "interpose/soft/libcuda/call.h"
#include "interpose/soft/libcuda/contexts.h"
#include "interpose/soft/libcuda/memory/virtual_memory_management.h"

using namespace hpe::libcuda;
using hpe::cudart::allocation_kind;
using hpe::cudart::cudart_allocation;
using hpe::cudart::process;
using hpe::cudart::require;
using hpe::libcuda::pointer_of;

namespace {

CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

CUmemLocation location_of(CUdevice device) {
  const bool is_host = device == CU_DEVICE_CPU;
  return {is_host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, is_host ? 0 : device};
}

template <class T>
void tell(void* data, T value) {
  std::memcpy(data, &value, sizeof value);  // NOLINT(bugprone-sizeof-expression): some values are pointers
}

/// Returns the number of bytes of an attribute's value; for addresses outside all allocations, hpe sets these bytes to
/// 0. Throws cudaErrorInvalidValue for attributes that hpe does not know.
std::size_t bytes_of(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return sizeof(unsigned);
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return sizeof(void*);
    default: throw hpe::cudart::failure(cudaErrorInvalidValue);
  }
}

CUdeviceptr on_device(const cudart_allocation& of, const void* pointer) {
  return address_of(of.device_base) + (address_of(pointer) - address_of(of.base));
}

/// Writes an attribute of an address in an allocation. Throws cudaErrorInvalidValue for attributes that this kind of
/// memory does not have.
void tell_attribute(void* data, CUpointer_attribute attribute, const void* pointer, const cudart_allocation& of) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return tell(data, handle_of(*contexts().primary(of.device)));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return tell(data, of.is_on_device() ? unsigned{CU_MEMORYTYPE_DEVICE} : unsigned{CU_MEMORYTYPE_HOST});
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return tell(data, on_device(of, pointer));
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(!of.is_on_device() || of.is_managed(), cudaErrorInvalidValue);
      return tell(data, pointer);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return tell(data, 0U);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return tell(data, of.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return tell(data, of.is_managed() ? 1U : 0U);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return tell(data, of.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return tell(data, of.kind == allocation_kind::device ? 1U : 0U);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return tell(data, address_of(of.device_base));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return tell(data, of.size);
    case CU_POINTER_ATTRIBUTE_MAPPED: return tell(data, 1U);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return tell(data, of.kind == allocation_kind::mapped
                            ? unsigned{virtual_memory::of_process().handle_types(address_of(pointer))}
                            : 0U);
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return tell(data, 0U);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return tell(data, unsigned{CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE});
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
      cudaMemPool_t pool = nullptr;
      if (of.kind == allocation_kind::pool) hpe::cudart::check(cudaDeviceGetDefaultMemPool(&pool, of.device));
      return tell(data, pool);
    }
    default: throw hpe::cudart::failure(cudaErrorInvalidValue);
  }
}

}  // namespace

extern "C" {

/// Unlike the runtime, the driver refuses an allocation of 0 bytes.
CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* made, std::size_t bytes) {
  return in_context("cuMemAlloc_v2", [&] {
    require(bytes > 0, cudaErrorInvalidValue);
    return cudaMalloc(reinterpret_cast<void**>(made), bytes);
  });
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr* made, std::size_t* pitch, std::size_t width, std::size_t height,
                                    unsigned element) {
  return in_context("cuMemAllocPitch_v2", [&] {
    require(width > 0 && height > 0 && (element == 4 || element == 8 || element == 16), cudaErrorInvalidValue);
    return cudaMallocPitch(reinterpret_cast<void**>(made), pitch, width, height);
  });
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  return in_context("cuMemGetAddressRange_v2", [&] {
    const auto found = process().memory().find_also_of_hpe(pointer_of(address));
    require(found.has_value(), cudaErrorSymbolNotFound);
    if (base != nullptr) *base = address_of(found->device_base);
    if (bytes != nullptr) *bytes = found->size;
  });
}

CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  return call("cuPointerGetAttribute", [&] {
    const auto found = process().memory().find_also_of_hpe(pointer_of(address));
    require(data != nullptr && found.has_value(), cudaErrorInvalidValue);
    tell_attribute(data, attribute, pointer_of(address), *found);
  });
}

/// If the address is outside all allocations, sets the values to 0, but the number of the device to -2. For device
/// memory, the host pointer becomes null.
CUresult CUDAAPI cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                        CUdeviceptr address) {
  return call("cuPointerGetAttributes", [&] {
    require(count > 0 && attributes != nullptr && data != nullptr, cudaErrorInvalidValue);
    const auto found = process().memory().find_also_of_hpe(pointer_of(address));
    for (unsigned i = 0; i < count; ++i) {
      require(data[i] != nullptr, cudaErrorInvalidValue);
      std::memset(data[i], 0, bytes_of(attributes[i]));
      if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) tell(data[i], -2);
      const bool has_host_pointer = found && (!found->is_on_device() || found->is_managed());
      if (found && (attributes[i] != CU_POINTER_ATTRIBUTE_HOST_POINTER || has_host_pointer))
        tell_attribute(data[i], attributes[i], pointer_of(address), *found);
    }
  });
}

// The versions of CUDA 12, with a device in place of a location.

CUresult CUDAAPI cuMemAdvise(CUdeviceptr address, std::size_t bytes, CUmem_advise advice, CUdevice device) {
  return cuMemAdvise_v2(address, bytes, advice, location_of(device));
}

CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr address, std::size_t bytes, CUdevice device, CUstream stream) {
  return cuMemPrefetchAsync_v2(address, bytes, location_of(device), 0, stream);
}

/// The only attribute that programs can set is CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, which requests synchronous copies; hpe
/// ignores its value.
CUresult CUDAAPI cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return call("cuPointerSetAttribute", [&] {
    require(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, cudaErrorInvalidValue);
    require(process().memory().find(pointer_of(address)).has_value(), cudaErrorInvalidValue);
  });
}
}
