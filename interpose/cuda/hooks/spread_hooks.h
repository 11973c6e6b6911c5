#pragma once

/// The hooks that let a program for one GPU use all (hpe run --spread): the devices and memory that it sees, and the
/// code that it loads. Memory that does not lie on several GPUs may be hpe's (oversubscribed_hooks.h). Only
/// hook_table.cpp includes this file. Without --spread they cost a comparison.

#include "interpose/cuda/hooks/oversubscribed_hooks.h"
#include "interpose/cuda/hooks/real_entries.h"
#include "interpose/cuda/interposer.h"
#include "interpose/cuda/spread/spreading.h"

namespace hpe::cuda_hooks {

namespace {

// ---- devices -----------------------------------------------------------------------------------------------------

// The number of devices stays the driver's: NVIDIA's runtime library refuses a driver that tells it another one.
inline bool joins_gpus() {
  if (!spreading::wanted()) return false;
  interposer* const hpe = interposer::instance();
  return hpe != nullptr && spreading::joins_gpus(hpe->driver());
}

template <auto Entry>
CUresult CUDAAPI device_memory(std::size_t* bytes, CUdevice device) {
  const CUresult result = (real.*Entry)(bytes, device);
  if (result != CUDA_SUCCESS || device != 0 || !joins_gpus()) return result;
  const joined_gpus gpus(interposer::instance()->driver());
  for (unsigned n = 1; n < gpus.count(); ++n) {
    std::size_t more = 0;
    if ((real.*Entry)(&more, gpus.device(n)) == CUDA_SUCCESS) *bytes += more;
  }
  return result;
}

// ---- memory ------------------------------------------------------------------------------------------------------

template <auto Entry>
CUresult CUDAAPI memory_info(std::size_t* free, std::size_t* total) {
  spreading* const s = spreading::active();
  const CUresult result = memory_info_larger<Entry>(free, total);
  if (result != CUDA_SUCCESS || s == nullptr || !s->is_current()) return result;
  try {
    const joined_gpus::memory all = s->all_memory();
    if (free != nullptr) *free = all.free;
    if (total != nullptr) *total = all.total;
  } catch (const error& e) {
    log(log_level::info, "the memory of one GPU is told: {}", e.what());
  }
  return result;
}

template <auto Entry>
CUresult CUDAAPI allocate(CUdeviceptr* made, std::size_t bytes) {
  if (spreading* const s = spreading::active())
    if (const auto done = s->allocate(made, bytes)) return *done;
  return allocate_larger<Entry>(made, bytes);
}

template <auto Entry>
CUresult CUDAAPI allocate_rows(CUdeviceptr* made, std::size_t* pitch, std::size_t width, std::size_t rows,
                               unsigned element) {
  if (spreading* const s = spreading::active())
    if (const auto done = s->allocate_rows(made, pitch, width, rows)) return *done;
  return allocate_larger_rows<Entry>(made, pitch, width, rows, element);
}

template <auto Entry>
CUresult CUDAAPI address_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  spreading* const s = spreading::active();
  const auto range = s != nullptr ? s->range_at(address) : std::nullopt;
  if (!range) return address_range_larger<Entry>(base, bytes, address);
  if (base != nullptr) *base = range->base;
  if (bytes != nullptr) *bytes = range->bytes;
  return CUDA_SUCCESS;
}

/// What the driver tells of a piece is made that of memory of one GPU.
inline void correct_attribute(void* value, CUpointer_attribute attribute, const spreading& s,
                              const spreading::range& range) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *static_cast<CUcontext*>(value) = s.context(); break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(value) = 0; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *static_cast<CUdeviceptr*>(value) = range.base; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *static_cast<std::size_t*>(value) = range.bytes; break;
    default: break;
  }
}

template <auto Entry>
CUresult CUDAAPI pointer_attribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  spreading* const s = spreading::active();
  const auto range = s != nullptr ? s->range_at(address) : std::nullopt;
  if (!range) return pointer_attribute_larger<Entry>(value, attribute, address);
  // The number of an allocation is that of its first piece.
  const bool is_number = attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID;
  const CUresult result = (real.*Entry)(value, attribute, is_number ? range->base : address);
  if (result == CUDA_SUCCESS) correct_attribute(value, attribute, *s, *range);
  return result;
}

template <auto Entry>
CUresult CUDAAPI pointer_attributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                    CUdeviceptr address) {
  spreading* const s = spreading::active();
  const auto range = s != nullptr ? s->range_at(address) : std::nullopt;
  if (!range) return pointer_attributes_larger<Entry>(count, attributes, values, address);
  const CUresult result = (real.*Entry)(count, attributes, values, address);
  if (result == CUDA_SUCCESS)
    for (unsigned n = 0; n < count; ++n) correct_attribute(values[n], attributes[n], *s, *range);
  return result;
}

/// Frees memory that lies on several GPUs; nothing for other memory.
inline std::optional<CUresult> free_spread(CUdeviceptr address) {
  spreading* const s = spreading::active();
  const std::size_t extent = s != nullptr ? s->starts_at(address) : 0;
  if (extent == 0) return std::nullopt;
  interposer::instance()->gives_back(address, extent);
  return s->free(address);
}

/// Whether memory lies on several GPUs, so that other processes cannot get it; says so.
inline bool cannot_be_exported(CUdeviceptr address) {
  spreading* const s = spreading::active();
  if (s == nullptr || !s->range_at(address)) return false;
  log(log_level::warn, "memory at {:#x} lies on several GPUs (--spread), so other processes cannot get it", address);
  return true;
}

// ---- code --------------------------------------------------------------------------------------------------------

template <auto Entry, class Handle, class... How>
CUresult CUDAAPI load_code(Handle* made, const void* code, How... how) {
  const CUresult result = (real.*Entry)(made, code, how...);
  if (result == CUDA_SUCCESS && spreading::wanted()) program_code::of_process().loaded(*made, code);
  return result;
}

template <auto Entry, class Handle, class... How>
CUresult CUDAAPI load_file(Handle* made, const char* path, How... how) {
  const CUresult result = (real.*Entry)(made, path, how...);
  if (result == CUDA_SUCCESS && spreading::wanted()) program_code::of_process().loaded_file(*made, path);
  return result;
}

template <auto Entry, class Handle>
CUresult CUDAAPI unload(Handle handle) {
  const CUresult result = (real.*Entry)(handle);
  if (result == CUDA_SUCCESS && spreading::wanted()) {
    program_code::of_process().unloaded(handle);
    if (spreading* const s = spreading::active()) s->forget_handles();
  }
  return result;
}

template <auto Entry, class Kernel, class From>
CUresult CUDAAPI get_kernel(Kernel* kernel, From from, const char* name) {
  const CUresult result = (real.*Entry)(kernel, from, name);
  if (result == CUDA_SUCCESS && spreading::wanted()) program_code::of_process().is_kernel_of(*kernel, from, name);
  return result;
}

template <auto Entry, class Handle, class From>
CUresult CUDAAPI get_same(Handle* handle, From from) {
  const CUresult result = (real.*Entry)(handle, from);
  if (result == CUDA_SUCCESS && spreading::wanted()) program_code::of_process().is_same(*handle, from);
  return result;
}

}  // namespace

}  // namespace hpe::cuda_hooks
