#pragma once

/// The hooks for allocations, for queries about memory, and for calls that load code. Only hook_table.cpp includes this
/// file. If no kind of memory is registered, a hook costs one comparison and then calls the driver.

#include <algorithm>

#include "interpose/gpu/copies/pinned_by_program.h"
#include "interpose/gpu/hooks/guarded.h"
#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/hooks/real_entries.h"
#include "interpose/gpu/interposer.h"
#include "interpose/gpu/work/default_stream.h"
#include "interpose/gpu/work/launch_parameters.h"

namespace hpe::cuda_hooks {

namespace {

/// Lets the kinds of memory observe memory of the program.
inline void tell_memory(const program_memory& made) {
  let_observe([&](memory_kind& kind) { kind.has_memory(made); });
}
inline void tell_given_back(CUdeviceptr base, CUstream stream = nullptr) {
  let_observe([&](memory_kind& kind) { kind.gives_back(base, stream); });
}
inline CUdeviceptr address_of(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

// ---- pinned host memory ------------------------------------------------------------------------------------------

/// Records memory that the program has pinned.
inline void note_pinned(const program_memory& made) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are numbers
  pinned_by_program::of_process().add(reinterpret_cast<const void*>(made.base), made.bytes);
  try {
    if (interposer* const hpe = interposer::instance()) hpe->copies().has_pinned(made.bytes);
  } catch (const std::bad_alloc&) {  // no threads help
  }
  tell_memory(made);
}

template <auto Entry, class... Flags>
CUresult CUDAAPI allocate_pinned(void** made, std::size_t bytes, Flags... flags) {
  const CUresult result = (real.*Entry)(made, bytes, flags...);
  if (result != CUDA_SUCCESS) return result;
  note_pinned({program_memory::kind::pinned, address_of(*made), bytes});
  return result;
}

template <auto Entry>
CUresult CUDAAPI pin(void* begin, std::size_t bytes, unsigned flags) {
  const CUresult result = (real.*Entry)(begin, bytes, flags);
  if (result != CUDA_SUCCESS) return result;
  note_pinned({program_memory::kind::registered, address_of(begin), bytes});
  return result;
}

template <auto Entry>
CUresult CUDAAPI unpin(void* begin) {
  pinned_by_program::of_process().remove(begin);
  tell_given_back(address_of(begin));
  return (real.*Entry)(begin);
}

// ---- allocations -------------------------------------------------------------------------------------------------

/// Lets the driver allocate memory by allocate(). If the driver returns CUDA_ERROR_OUT_OF_MEMORY, lets the registered
/// kinds of memory free unneeded memory, and tries again if any kind has freed memory.
template <class Allocate>
CUresult try_twice_by_driver(const Allocate& allocate) {
  const CUresult result = allocate();
  bool has_room = false;
  if (result == CUDA_ERROR_OUT_OF_MEMORY) memory_kinds::each([&](memory_kind& kind) { has_room |= kind.make_room(); });
  return has_room ? allocate() : result;
}

/// Likewise, for memory that a kind may count. allocate() sets `name`, the memory's address or handle.
template <class Name, class Allocate>
CUresult allocate_by_driver(const driver_allocation& what, const Name& name, const Allocate& allocate) {
  const auto counted = memory_kinds::first([&](memory_kind& kind) {
    return kind.allocate_by_driver(what, [&](std::uint64_t& made) {
      const CUresult result = try_twice_by_driver(allocate);
      if (result == CUDA_SUCCESS) made = name;
      return result;
    });
  });
  return counted ? *counted : try_twice_by_driver(allocate);
}

/// Reports a change of the driver's memory to the registered kinds. Host memory may be too short to record the change.
inline void tell_driver_allocation(const driver_allocation_event& event) {
  try {
    memory_kinds::each([&](memory_kind& kind) { kind.changed(event); });
  } catch (const std::bad_alloc&) {
  }
}

/// For cuMemAlloc and cuMemAllocAsync. If the stream of cuMemAllocAsync is being captured, the driver allocates the
/// memory. If a registered kind allocates the memory, any stream can use the memory at once.
template <auto Entry, class... Stream>
CUresult allocate_by_kind_or_driver(CUdeviceptr* made, std::size_t bytes, Stream... stream) {
  constexpr bool of_pool = sizeof...(Stream) != 0;
  const auto elsewhere = memory_kinds::first([&](memory_kind& kind) -> std::optional<CUresult> {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    interposer* const hpe = interposer::instance();
    if (hpe == nullptr || made == nullptr) return std::nullopt;
    if constexpr (of_pool)
      if (((hpe->driver().cuStreamIsCapturing(stream, &status)), ...) != CUDA_SUCCESS ||
          status != CU_STREAM_CAPTURE_STATUS_NONE)
        return std::nullopt;
    return kind.allocate(*made, bytes, of_pool);
  });
  if (elsewhere) return *elsewhere;
  const auto by_driver = [&] { return (real.*Entry)(made, bytes, stream...); };
  if (of_pool || made == nullptr) return try_twice_by_driver(by_driver);
  return allocate_by_driver({driver_allocation::name_kind::address, std::nullopt, bytes}, *made, by_driver);
}

template <auto Entry, flavour Flavour, class... Stream>
CUresult CUDAAPI allocate(CUdeviceptr* made, std::size_t bytes, Stream... stream) {
  const CUresult result = allocate_by_kind_or_driver<Entry>(made, bytes, stream...);
  CUstream in = nullptr;
  ((in = named(stream, Flavour)), ...);
  if (result == CUDA_SUCCESS) tell_memory({program_memory::kind::device, *made, bytes, in});
  return result;
}
template <auto Entry, flavour Flavour>
CUresult CUDAAPI allocate_from_pool(CUdeviceptr* made, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  const CUresult result = (real.*Entry)(made, bytes, pool, stream);
  if (result == CUDA_SUCCESS) tell_memory({program_memory::kind::device, *made, bytes, named(stream, Flavour)});
  return result;
}
template <auto Entry>
CUresult CUDAAPI allocate_managed(CUdeviceptr* made, std::size_t bytes, unsigned flags) {
  const CUresult result = (real.*Entry)(made, bytes, flags);
  if (result == CUDA_SUCCESS) tell_memory({program_memory::kind::managed, *made, bytes});
  return result;
}

template <auto Entry>
CUresult allocate_rows_by_kind_or_driver(CUdeviceptr* made, std::size_t* pitch, std::size_t width, std::size_t rows,
                                         unsigned element) {
  constexpr std::size_t unit = 512;  // the driver aligns rows to this number of bytes
  const std::size_t between = saturated_sum(width, unit - 1) / unit * unit;
  const std::size_t bytes = saturated_product(between, rows);
  const bool is_possible = made != nullptr && pitch != nullptr && bytes != 0 && bytes != too_many_bytes;
  const auto elsewhere = memory_kinds::first([&](memory_kind& kind) {
    return is_possible && interposer::instance() != nullptr ? kind.allocate(*made, bytes, false) : std::nullopt;
  });
  if (elsewhere == CUDA_SUCCESS) *pitch = between;
  if (elsewhere) return *elsewhere;
  const auto by_driver = [&] { return (real.*Entry)(made, pitch, width, rows, element); };
  return is_possible
             ? allocate_by_driver({driver_allocation::name_kind::address, std::nullopt, bytes}, *made, by_driver)
             : try_twice_by_driver(by_driver);
}

template <auto Entry>
CUresult CUDAAPI allocate_rows(CUdeviceptr* made, std::size_t* pitch, std::size_t width, std::size_t rows,
                               unsigned element) {
  const CUresult result = allocate_rows_by_kind_or_driver<Entry>(made, pitch, width, rows, element);
  if (result == CUDA_SUCCESS) tell_memory({program_memory::kind::device, *made, *pitch * rows});
  return result;
}

template <auto Entry>
CUresult CUDAAPI create_handle(CUmemGenericAllocationHandle* made, std::size_t bytes, const CUmemAllocationProp* what,
                               unsigned long long flags) {
  const auto by_driver = [&] { return (real.*Entry)(made, bytes, what, flags); };
  if (made == nullptr || what == nullptr || what->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return try_twice_by_driver(by_driver);
  return allocate_by_driver({driver_allocation::name_kind::handle, what->location.id, bytes}, *made, by_driver);
}

template <auto Entry>
CUresult CUDAAPI retain_handle(CUmemGenericAllocationHandle* handle, void* address) {
  const CUresult result = (real.*Entry)(handle, address);
  if (result == CUDA_SUCCESS) tell_driver_allocation({driver_allocation_event::step::retained, 0, 0, *handle});
  return result;
}

/// The hook for an entry that passes the program the address of memory. hpe only has to notice the call (guarded.h).
template <auto Entry, class... What>
CUresult CUDAAPI pass_address(CUdeviceptr* address, What... what) {
  return (real.*Entry)(address, what...);
}

template <auto Entry, flavour Flavour, class... Stream>
CUresult CUDAAPI give_back(CUdeviceptr address, Stream... stream) {
  CUstream in = nullptr;
  ((in = named(stream, Flavour)), ...);
  tell_given_back(address, in);
  if (const auto elsewhere = memory_kinds::first([&](memory_kind& kind) { return kind.free(address); }))
    return *elsewhere;
  memory_kinds::each([&](memory_kind& kind) { kind.frees_other(address); });
  if (interposer* const hpe = interposer::started()) hpe->gives_back(address);
  const CUresult result = (real.*Entry)(address, stream...);
  if (result == CUDA_SUCCESS) tell_driver_allocation({driver_allocation_event::step::freed, address, 0, 0});
  return result;
}

// ---- queries -----------------------------------------------------------------------------------------------------

/// The program sees the memory of devices joined to this device as a part of this device's memory, so this hook adds
/// the sizes of their memory. hpe does not change the number of devices that the driver reports, because NVIDIA's
/// runtime library refuses to work if the number differs from the number of devices in the machine.
template <auto Entry>
CUresult CUDAAPI device_memory(std::size_t* bytes, CUdevice device) {
  const CUresult result = (real.*Entry)(bytes, device);
  if (result == CUDA_SUCCESS)
    memory_kinds::each([&](memory_kind& kind) {
      for (const CUdevice other : kind.joined_to(device)) {
        std::size_t more = 0;
        if ((real.*Entry)(&more, other) == CUDA_SUCCESS) *bytes += more;
      }
    });
  return result;
}

template <auto Entry>
CUresult CUDAAPI memory_info(std::size_t* free, std::size_t* total) {
  const auto amounts = memory_kinds::first([](memory_kind& kind) { return kind.memory(); });
  if (!amounts) return (real.*Entry)(free, total);
  if (free != nullptr) *free = amounts->free;
  if (total != nullptr) *total = amounts->total;
  return CUDA_SUCCESS;
}

template <auto Entry>
CUresult CUDAAPI address_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  const auto range = memory_kinds::first([&](memory_kind& kind) { return kind.range_at(address); });
  if (!range) return (real.*Entry)(base, bytes, address);
  if (base != nullptr) *base = range->base;
  if (bytes != nullptr) *bytes = range->bytes;
  return CUDA_SUCCESS;
}

template <auto Entry>
CUresult CUDAAPI pointer_attribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  const auto elsewhere = memory_kinds::first(
      [&](memory_kind& kind) { return value != nullptr ? kind.attribute(value, attribute, address) : std::nullopt; });
  return elsewhere ? *elsewhere : (real.*Entry)(value, attribute, address);
}

/// The driver itself refuses calls with null pointers, and gives the values of all attributes that a kind of memory
/// does not answer, because only the driver knows the sizes of the values of attributes that are newer than hpe. For
/// memory without a host pointer, this value becomes null, as the driver does it.
template <auto Entry>
CUresult CUDAAPI pointer_attributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                    CUdeviceptr address) {
  const auto elsewhere = memory_kinds::first([&](memory_kind& kind) -> std::optional<CUresult> {
    if (count == 0 || attributes == nullptr || values == nullptr ||
        std::find(values, values + count, nullptr) != values + count || !kind.range_at(address))
      return std::nullopt;
    for (unsigned n = 0; n < count; ++n) {
      std::optional<CUresult> result = kind.attribute(values[n], attributes[n], address);
      if (!result) result = (real.*Entry)(1, attributes + n, values + n, address);
      if (*result != CUDA_SUCCESS && attributes[n] == CU_POINTER_ATTRIBUTE_HOST_POINTER) {
        *static_cast<void**>(values[n]) = nullptr;
      } else if (*result != CUDA_SUCCESS) {
        return result;
      }
    }
    return CUDA_SUCCESS;
  });
  return elsewhere ? *elsewhere : (real.*Entry)(count, attributes, values, address);
}

/// Returns true, and logs the reason, if the program cannot share the memory at an address with other processes.
inline bool stays_here(CUdeviceptr address) {
  const auto why = memory_kinds::first([&](memory_kind& kind) { return kind.obstacle_to_sharing(address); });
  if (why) log(log_level::warn, "memory at {:#x} {}, so other processes cannot get it by an IPC handle", address, *why);
  return why.has_value();
}

// ---- code --------------------------------------------------------------------------------------------------------

/// Reports code of the program to the registered kinds of memory. If host memory is too short, hpe does not record the
/// code, so the kernels in this code are not spread.
inline void tell_code(const program_code_event& event) {
  try {
    memory_kinds::each([&](memory_kind& kind) { kind.code(event); });
  } catch (const std::bad_alloc&) {
  }
}
using code_step = program_code_event::step;

template <auto Entry, class Handle, class... How>
CUresult CUDAAPI load_code(Handle* made, const void* code, How... how) {
  const CUresult result = (real.*Entry)(made, code, how...);
  if (result == CUDA_SUCCESS) tell_code({code_step::loaded, *made, code, nullptr});
  return result;
}

template <auto Entry, class Handle, class... How>
CUresult CUDAAPI load_file(Handle* made, const char* path, How... how) {
  const CUresult result = (real.*Entry)(made, path, how...);
  if (result == CUDA_SUCCESS) tell_code({code_step::loaded_file, *made, nullptr, path});
  return result;
}

// The sizes are forgotten before the code is unloaded, because new kernels may get the handles of unloaded kernels at
// once. The program launches no kernel of the code that it unloads.
template <auto Entry, class Handle>
CUresult CUDAAPI unload(Handle handle) {
  parameter_sizes::of_process().forget();
  const CUresult result = (real.*Entry)(handle);
  if (result == CUDA_SUCCESS) tell_code({code_step::unloaded, handle, nullptr, nullptr});
  return result;
}

template <auto Entry, class Kernel, class From>
CUresult CUDAAPI get_kernel(Kernel* kernel, From from, const char* name) {
  const CUresult result = (real.*Entry)(kernel, from, name);
  if (result == CUDA_SUCCESS) tell_code({code_step::kernel, *kernel, from, name});
  return result;
}

template <auto Entry, class Handle, class From>
CUresult CUDAAPI get_same(Handle* handle, From from) {
  const CUresult result = (real.*Entry)(handle, from);
  if (result == CUDA_SUCCESS) tell_code({code_step::same, *handle, from, nullptr});
  return result;
}

}  // namespace

}  // namespace hpe::cuda_hooks
