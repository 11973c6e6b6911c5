#pragma once

/// The hooks for entries that share memory with other processes and other interfaces, or map it. The uses of this
/// memory by others are hidden from hpe. Only hook_table.cpp includes this file.

#include <algorithm>

#include "interpose/gpu/hooks/memory_hooks.h"
#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/hooks/real_entries.h"
#include "interpose/gpu/interposer.h"

namespace hpe::cuda_hooks {

namespace {

/// Runs note(), whose only purpose is a warning. If host memory is too short, hpe does not print the warning.
template <class Note>
void for_warnings(const Note& note) {
  try {
    note();
  } catch (const std::bad_alloc&) {
  }
}

/// To be called when the program lets other processes or a network card access its device memory.
inline void end_deferred_copies() {
  deferred_copies::forbid();
  if (interposer* const hpe = interposer::started()) hpe->deferred().finish();
}

inline void note_shared(incoherent_use how, CUdeviceptr address, std::size_t bytes) {
  end_deferred_copies();
  for_warnings([&] {
    interposer* const hpe = interposer::instance();
    if (hpe == nullptr || address == 0) return;
    const std::size_t size = bytes != 0 ? bytes : std::max<std::size_t>(1, hpe->adopted().bytes_from(address));
    hpe->uses().shares(how, {address, address + size}, hpe->adopted().touched(address));
  });
}

// The hook for an entry that shares memory with other processes. The entry's arguments are the handle, which the entry
// sets, and the address.
template <auto Entry, incoherent_use How, class Handle>
CUresult CUDAAPI share(Handle* handle, CUdeviceptr address) {
  if (stays_here(address)) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult result = (real.*Entry)(handle, address);
  if (result == CUDA_SUCCESS) note_shared(How, address, 0);
  return result;
}

// The hook for an entry that maps memory of other processes or APIs. The entry's arguments are the address, which the
// entry sets, and the description of the memory.
template <auto Entry, incoherent_use How, class... What>
CUresult CUDAAPI open_shared(CUdeviceptr* address, What... what) {
  const CUresult result = (real.*Entry)(address, what...);
  if (result == CUDA_SUCCESS && address != nullptr) note_shared(How, *address, 0);
  return result;
}

// Records that the program shares a handle. To share memory that it maps itself (cuMemMap), the program shares the
// handle of the allocation, before or after it maps the allocation.
inline void note_handle(incoherent_use how, CUmemGenericAllocationHandle handle) {
  end_deferred_copies();
  for_warnings([&] {
    interposer* const hpe = interposer::instance();
    if (hpe == nullptr) return;
    for (const adopted_region::bytes range : hpe->uses().shares_handle(how, handle))
      note_shared(how, range.begin, range.end - range.begin);
  });
}

template <auto Entry>
CUresult CUDAAPI export_handle(void* shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                               unsigned long long flags) {
  const CUresult result = (real.*Entry)(shared, handle, type, flags);
  if (result == CUDA_SUCCESS) note_handle(incoherent_use::exported, handle);
  return result;
}

// The hooks for entries with which a program lets a network card access device memory.
template <auto Entry>
CUresult CUDAAPI get_range_handle(void* handle, CUdeviceptr address, std::size_t bytes, CUmemRangeHandleType type,
                                  unsigned long long flags) {
  end_deferred_copies();
  return (real.*Entry)(handle, address, bytes, type, flags);
}

template <auto Entry>
CUresult CUDAAPI set_pointer_attribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) end_deferred_copies();
  return (real.*Entry)(value, attribute, address);
}

template <auto Entry>
CUresult CUDAAPI import_handle(CUmemGenericAllocationHandle* handle, void* shared, CUmemAllocationHandleType type) {
  const CUresult result = (real.*Entry)(handle, shared, type);
  if (result == CUDA_SUCCESS) note_handle(incoherent_use::opened, *handle);
  return result;
}

template <auto Entry>
CUresult CUDAAPI map_handle(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                            CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const CUresult result = (real.*Entry)(address, bytes, offset, handle, flags);
  if (result != CUDA_SUCCESS) return result;
  tell_driver_allocation({driver_allocation_event::step::mapped, address, bytes, handle});
  for_warnings([&] {
    interposer* const hpe = interposer::instance();
    const auto how = hpe != nullptr ? hpe->uses().maps(handle, {address, address + bytes}) : std::nullopt;
    if (how) note_shared(*how, address, bytes);
  });
  return result;
}

template <auto Entry>
CUresult CUDAAPI release_handle(CUmemGenericAllocationHandle handle) {
  if (interposer* const hpe = interposer::started()) hpe->uses().releases(handle);
  const CUresult result = (real.*Entry)(handle);
  if (result == CUDA_SUCCESS) tell_driver_allocation({driver_allocation_event::step::released, 0, 0, handle});
  return result;
}

template <auto Entry>
CUresult CUDAAPI map_graphics(CUdeviceptr* address, std::size_t* bytes, CUgraphicsResource resource) {
  const CUresult result = (real.*Entry)(address, bytes, resource);
  if (result == CUDA_SUCCESS && address != nullptr) note_shared(incoherent_use::graphics, *address, bytes ? *bytes : 0);
  return result;
}

template <auto Entry>
CUresult CUDAAPI unmap(CUdeviceptr address, std::size_t bytes) {
  if (interposer* const hpe = interposer::started()) hpe->gives_back(address, bytes);
  const CUresult result = (real.*Entry)(address, bytes);
  if (result == CUDA_SUCCESS) tell_driver_allocation({driver_allocation_event::step::unmapped, address, bytes, 0});
  return result;
}

}  // namespace

}  // namespace hpe::cuda_hooks
