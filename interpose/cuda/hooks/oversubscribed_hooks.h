#pragma once

/// The hooks that let a program allocate more memory than its GPU has (hpe run --oversubscribe): allocations, and what
/// the program may ask about them. Only hook_table.cpp includes this file. Without --oversubscribe they cost a
/// comparison.

#include "interpose/cuda/hooks/real_entries.h"
#include "interpose/cuda/interposer.h"
#include "interpose/cuda/oversubscribed/oversubscribed.h"
#include "interpose/cuda/spread/spreading.h"
#include "interpose/cuda/work/launch_scope.h"

namespace hpe::cuda_hooks {

namespace {

inline std::optional<movable_object> movable_at(CUdeviceptr address) {
  oversubscribed* const all = oversubscribed::active();
  return all != nullptr ? all->objects().find(address) : std::nullopt;
}

// ---- allocations -------------------------------------------------------------------------------------------------

/// Whether allocations may exceed the GPU's memory. With --spread they cannot: their bytes lie on GPUs.
inline bool may_exceed_gpu() {
  static const bool may = [] {
    if (!oversubscribed::wanted()) return false;
    if (spreading::wanted()) log(log_level::warn, "hpe run --oversubscribe has no effect on GPUs with --spread");
    return !spreading::wanted();
  }();
  return may;
}

inline std::optional<CUresult> allocate_movable(CUdeviceptr* made, std::size_t bytes) {
  if (!may_exceed_gpu()) return std::nullopt;
  interposer* const hpe = interposer::instance();
  return hpe != nullptr ? oversubscribed::allocate(hpe->driver(), made, bytes) : std::nullopt;
}

/// cuMemAlloc, and cuMemAllocAsync outside of captures: memory of hpe is there at once.
template <auto Entry, class... Stream>
CUresult CUDAAPI allocate_larger(CUdeviceptr* made, std::size_t bytes, Stream... stream) {
  if constexpr (sizeof...(Stream) != 0) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    interposer* const hpe = may_exceed_gpu() ? interposer::instance() : nullptr;
    if (hpe != nullptr && (((hpe->driver().cuStreamIsCapturing(stream, &status)), ...) != CUDA_SUCCESS ||
                           status != CU_STREAM_CAPTURE_STATUS_NONE))
      return (real.*Entry)(made, bytes, stream...);
  }
  if (const auto done = allocate_movable(made, bytes)) return *done;
  return (real.*Entry)(made, bytes, stream...);
}

template <auto Entry>
CUresult CUDAAPI allocate_larger_rows(CUdeviceptr* made, std::size_t* pitch, std::size_t width, std::size_t rows,
                                      unsigned element) {
  constexpr std::size_t unit = 512;  // as the driver chooses
  std::size_t between = 0, bytes = 0;
  if (pitch != nullptr && width != 0 && !__builtin_add_overflow(width, unit - 1, &between) &&
      !__builtin_mul_overflow(between -= between % unit, rows, &bytes)) {
    if (const auto done = allocate_movable(made, bytes)) {
      if (*done == CUDA_SUCCESS) *pitch = between;
      return *done;
    }
  }
  return (real.*Entry)(made, pitch, width, rows, element);
}

inline std::optional<CUresult> free_movable(CUdeviceptr address) {
  oversubscribed* const all = oversubscribed::active();
  return all != nullptr ? all->free(address) : std::nullopt;
}

/// A context with memory of hpe is not reset, because hpe's own work is in it: its memory is freed.
inline std::optional<CUresult> reset_larger(CUdevice device) {
  oversubscribed* const all = oversubscribed::active();
  if (all == nullptr) return std::nullopt;
  return all->free_all(device);
}

// ---- questions ---------------------------------------------------------------------------------------------------

template <auto Entry>
CUresult CUDAAPI memory_info_larger(std::size_t* free, std::size_t* total) {
  oversubscribed* const all = oversubscribed::active();
  const auto amounts = all != nullptr ? all->memory() : std::nullopt;
  if (!amounts) return (real.*Entry)(free, total);
  if (free != nullptr) *free = amounts->free;
  if (total != nullptr) *total = amounts->total;
  return CUDA_SUCCESS;
}

template <auto Entry>
CUresult CUDAAPI address_range_larger(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  const auto object = movable_at(address);
  if (!object) return (real.*Entry)(base, bytes, address);
  if (base != nullptr) *base = object->base;
  if (bytes != nullptr) *bytes = object->bytes;
  return CUDA_SUCCESS;
}

/// The driver's answer for an allocation that it made. Nothing for attributes that such an allocation does not have.
inline bool describe(const movable_object& object, CUdeviceptr address, CUpointer_attribute attribute, void* value) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(value) = oversubscribed::active()->context_of(object);
      return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *static_cast<unsigned*>(value) = CU_MEMORYTYPE_DEVICE; return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *static_cast<CUdeviceptr*>(value) = address; return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *static_cast<unsigned long long*>(value) = object.number; return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *static_cast<unsigned*>(value) = 0; return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(value) = static_cast<int>(object.device); return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *static_cast<CUdeviceptr*>(value) = object.base; return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *static_cast<std::size_t*>(value) = object.bytes; return true;
    case CU_POINTER_ATTRIBUTE_MAPPED: *static_cast<unsigned*>(value) = 1; return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *static_cast<unsigned*>(value) = 0; return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: *static_cast<std::uint64_t*>(value) = 0; return true;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      *static_cast<unsigned*>(value) = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
      return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *static_cast<CUmemoryPool*>(value) = nullptr; return true;
    default: return false;
  }
}

template <auto Entry>
CUresult CUDAAPI pointer_attribute_larger(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  const auto object = value != nullptr ? movable_at(address) : std::nullopt;
  if (!object) return (real.*Entry)(value, attribute, address);
  return describe(*object, address, attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// Attributes that the memory does not have are null or 0, as the driver has it.
template <auto Entry>
CUresult CUDAAPI pointer_attributes_larger(unsigned count, CUpointer_attribute* attributes, void** values,
                                           CUdeviceptr address) {
  const auto object = attributes != nullptr && values != nullptr ? movable_at(address) : std::nullopt;
  if (!object) return (real.*Entry)(count, attributes, values, address);
  for (unsigned n = 0; n < count; ++n) {
    if (describe(*object, address, attributes[n], values[n])) continue;
    if (attributes[n] == CU_POINTER_ATTRIBUTE_HOST_POINTER) *static_cast<void**>(values[n]) = nullptr;
  }
  return CUDA_SUCCESS;
}

/// Whether an address is in memory of hpe, whose place changes, so that other processes cannot get it; says so.
inline bool is_movable_and_stays(CUdeviceptr address) {
  if (!movable_at(address)) return false;
  log(log_level::warn,
      "memory at {:#x} may leave the device (--oversubscribe), so other processes cannot get it by an IPC handle",
      address);
  return true;
}

// ---- work --------------------------------------------------------------------------------------------------------

/// What a launch uses: with --scope args, the allocations that its parameters point to.
inline movable_use use_of(oversubscribed& all, const kernel_launch& kernel) {
  interposer* const hpe = interposer::instance();
  return all.use_of(hpe->scope_is_parameters() ? words_of(hpe->driver(), kernel) : std::nullopt);
}

/// What other work uses: the allocations at the addresses among its arguments; without an address, everything.
template <class... Arguments>
movable_use use_of_arguments(oversubscribed& all, Arguments... arguments) {
  std::vector<CUdeviceptr> addresses;
  bool any = false;
  const auto note = [&](auto argument) {
    if constexpr (std::is_same_v<decltype(argument), CUdeviceptr>) {
      any = true;
      addresses.push_back(argument);
    }
  };
  (note(arguments), ...);
  return all.use_of(any ? std::optional(std::move(addresses)) : std::nullopt);
}

}  // namespace

}  // namespace hpe::cuda_hooks
