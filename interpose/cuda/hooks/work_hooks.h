#pragma once

/// The hooks of device work other than launches and copies, of waits, memory and contexts. Only hook_table.cpp includes
/// this file.

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "interpose/cuda/hooks/oversubscribed_hooks.h"
#include "interpose/cuda/hooks/real_entries.h"
#include "interpose/cuda/hooks/spread_hooks.h"
#include "interpose/cuda/interposer.h"
#include "interpose/cuda/work/device_work.h"
#include "runtime/trace/measured.h"
#include "runtime/trace/stalls.h"
#include "runtime/trace/status_page.h"

namespace hpe::cuda_hooks {

namespace {

// The stream among the arguments of an entry. A null stream counts as unknown, because its meaning depends on the
// entry.
inline CUstream stream_among() { return unknown_stream(); }
template <class First, class... Others>
CUstream stream_among(First first, Others... others) {
  if constexpr (std::is_same_v<First, CUstream>) return first != nullptr ? first : unknown_stream();
  return stream_among(others...);
}

template <auto Entry, class... Arguments>
CUresult any_work_in_memory(Arguments... arguments) {
  const device_work work(stream_among(arguments...));
  if (work.failed()) return work.result();
  return (real.*Entry)(arguments...);
}

template <auto Entry, class... Arguments>
CUresult CUDAAPI any_work(Arguments... arguments) {
  oversubscribed* const all = oversubscribed::active();
  if (all == nullptr) [[likely]]
    return any_work_in_memory<Entry>(arguments...);
  const CUstream in = stream_among(arguments...);
  return all->run(in == unknown_stream() ? nullptr : in, use_of_arguments(*all, arguments...),
                  [&] { return any_work_in_memory<Entry>(arguments...); });
}

// A fill of elements that follow each other: it overwrites its range, of any size.
template <auto Entry, flavour Flavour, class Value, class... Stream>
CUresult CUDAAPI fill(CUdeviceptr to, Value value, std::size_t count, Stream... stream) {
  const CUstream in = stream_of<Flavour>(stream...);
  const auto part = [&](std::size_t at, std::size_t bytes) {
    const device_work work(in, {{to + at, bytes, true}});
    if (work.failed()) return work.result();
    return (real.*Entry)(to + at, value, bytes / sizeof value, stream...);
  };
  if (oversubscribed* const all = oversubscribed::active()) [[unlikely]]
    if (const auto done = all->overwrite(to, count * sizeof value, sizeof value, in, part)) return *done;
  return part(0, count * sizeof value);
}

template <auto Entry, flavour Flavour, class Value, class... Stream>
CUresult CUDAAPI fill_rows(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width, std::size_t height,
                           Stream... stream) {
  const CUstream in = stream_of<Flavour>(stream...);
  const box_place place{to, pitch, 0};
  const box_part whole{0, 0, 0, width * sizeof value, height, 1};
  const auto fill_part = [&](const box_part& part) {
    const CUdeviceptr at = begin_of(place, part);
    const device_work work(in, {{at, part.is_empty() ? 0 : extent_of(place, part), true}});
    if (work.failed()) return work.result();
    return (real.*Entry)(at, pitch, value, part.width / sizeof value, part.height, stream...);
  };
  if (oversubscribed* const all = oversubscribed::active()) [[unlikely]]
    if (const auto done = all->use_box(place, std::nullopt, whole, in, fill_part)) return *done;
  return fill_part(whole);
}

// ---- waits of the program -------------------------------------------------------------------------------------------

// For trace::awaited: the name of the entry, and the handle that it was given.
inline std::string words_for_call(const void* entry, std::uint64_t handle, std::uint64_t /*none*/) {
  return fmt::format("{}({:#x}) waits for work of the program on devices", static_cast<const char*>(entry), handle);
}

// The result of a wait of the program: parts of launches on other GPUs may have failed, of which its own GPU knows
// nothing.
inline CUresult with_failures(CUresult result) {
  spreading* const s = spreading::active();
  return s != nullptr ? s->or_failure(result) : result;
}

// The driver is called; the program waits for it.
class waiting_call : trace::awaited {
 public:
  explicit waiting_call(const char* entry, const void* handle = nullptr) noexcept
      : awaited({words_for_call, entry, reinterpret_cast<std::uintptr_t>(handle)}) {}
};

template <auto Entry, class... Context>
CUresult CUDAAPI wait_for_context(Context... context) {
  const waiting_call here("cuCtxSynchronize", context...);
  if (!queuing_threads::watched()) return with_failures((real.*Entry)(context...));
  queued_uses& uses = interposer::started()->queued();
  const std::uint64_t noted = uses.so_far();
  const queuing_threads::queued_so_far queued;
  const CUresult result = with_failures((real.*Entry)(context...));
  if (result != CUDA_SUCCESS || !interposer::started()->program().are_one()) return result;
  queued.done();
  uses.done(noted);
  return result;
}

// Every context has default streams of its own.
template <auto Entry, flavour Flavour>
CUresult CUDAAPI wait_for_stream(CUstream stream) {
  const waiting_call here("cuStreamSynchronize", stream);
  if (!queuing_threads::watched()) return with_failures((real.*Entry)(stream));
  const CUstream waited = named(stream, Flavour);
  queued_uses& uses = interposer::started()->queued();
  const std::uint64_t noted = uses.so_far();
  const queuing_threads::queued_so_far queued(waited);
  const CUresult result = with_failures((real.*Entry)(stream));
  const bool of_each = waited == CU_STREAM_LEGACY || waited == CU_STREAM_PER_THREAD;
  if (result != CUDA_SUCCESS || (of_each && !interposer::started()->program().are_one())) return result;
  queued.done();
  uses.done(waited, noted);
  return result;
}

template <auto Entry>
CUresult CUDAAPI wait_for_event(CUevent event) {
  const waiting_call here("cuEventSynchronize", event);
  return with_failures((real.*Entry)(event));
}

template <auto Entry, flavour Flavour, class... Arguments>
CUresult CUDAAPI begin_capture(CUstream stream, Arguments... arguments) {
  const CUresult result = (real.*Entry)(stream, arguments...);
  if (interposer* const hpe = interposer::instance(); hpe != nullptr && result == CUDA_SUCCESS)
    hpe->program().begins_capture(named(stream, Flavour));
  return result;
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI end_capture(CUstream stream, CUgraph* graph) {
  if (interposer* const hpe = interposer::started()) hpe->program().ends_capture(named(stream, Flavour));
  return (real.*Entry)(stream, graph);
}

// The end of a stream also ends its capture.
template <auto Entry>
CUresult CUDAAPI end_stream(CUstream stream) {
  if (interposer* const hpe = interposer::started()) {
    hpe->program().ends_capture(stream);
    hpe->queued().ends(stream);
  }
  if (spreading* const s = spreading::active()) s->ends_stream(stream);
  return (real.*Entry)(stream);
}

template <auto Entry>
CUresult CUDAAPI retain_context(CUcontext* context, CUdevice device) {
  const CUresult result = (real.*Entry)(context, device);
  interposer* const hpe = spreading::wanted() ? interposer::instance() : interposer::started();
  if (hpe == nullptr || result != CUDA_SUCCESS) return result;
  hpe->program().retained(*context);
  if (device == 0) spreading::begin(hpe->driver(), hpe->program());
  return result;
}

template <auto Entry, class... Stream>
CUresult CUDAAPI give_back(CUdeviceptr address, Stream... stream) {
  if (const auto done = free_movable(address)) return *done;
  if (const auto done = free_spread(address)) return *done;
  if (spreading* const s = spreading::active()) s->frees_other();
  if (interposer* const hpe = interposer::started()) hpe->gives_back(address);
  return (real.*Entry)(address, stream...);
}

template <auto Entry>
CUresult CUDAAPI add_free_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                               CUdeviceptr address) {
  const CUresult result = (real.*Entry)(node, graph, after, count, address);
  if (interposer* const hpe = interposer::instance(); hpe != nullptr && result == CUDA_SUCCESS)
    hpe->graphs_give_back(address);
  return result;
}

template <auto Entry>
CUresult CUDAAPI unmap(CUdeviceptr address, std::size_t bytes) {
  if (interposer* const hpe = interposer::started()) hpe->gives_back(address, bytes);
  return (real.*Entry)(address, bytes);
}

// ---- memory and contexts whose uses hpe cannot see ------------------------------------------------------------------

using unwatched = incoherent_uses::kind;

inline void note_shared(unwatched how, CUdeviceptr address, std::size_t bytes) {
  interposer* const hpe = interposer::instance();
  if (hpe == nullptr || address == 0) return;
  if (bytes == 0) bytes = std::max<std::size_t>(1, hpe->adopted().bytes_from(address));
  hpe->uses().shares(how, {address, address + bytes}, hpe->adopted().touched(address));
}

// An entry that shares memory with others: (handle to fill in, address).
template <auto Entry, unwatched How, class Handle>
CUresult CUDAAPI share(Handle* handle, CUdeviceptr address) {
  if (is_movable_and_stays(address)) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult result = (real.*Entry)(handle, address);
  if (result == CUDA_SUCCESS) note_shared(How, address, 0);
  return result;
}

template <auto Entry>
CUresult CUDAAPI export_memory(CUipcMemHandle* handle, CUdeviceptr address) {
  if (cannot_be_exported(address)) return CUDA_ERROR_NOT_SUPPORTED;
  return share<Entry, unwatched::exported>(handle, address);
}

// An entry that maps memory of others: (address to fill in, description of the memory).
template <auto Entry, unwatched How, class... What>
CUresult CUDAAPI open_shared(CUdeviceptr* address, What... what) {
  const CUresult result = (real.*Entry)(address, what...);
  if (result == CUDA_SUCCESS && address != nullptr) note_shared(How, *address, 0);
  return result;
}

// Memory that the program maps itself is shared by its allocation's handle, before or after the mapping.
inline void note_handle(unwatched how, CUmemGenericAllocationHandle handle) {
  interposer* const hpe = interposer::instance();
  if (hpe == nullptr) return;
  for (const adopted_region::bytes range : hpe->uses().shares_handle(how, handle))
    note_shared(how, range.begin, range.end - range.begin);
}

template <auto Entry>
CUresult CUDAAPI export_handle(void* shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                               unsigned long long flags) {
  const CUresult result = (real.*Entry)(shared, handle, type, flags);
  if (result == CUDA_SUCCESS) note_handle(unwatched::exported, handle);
  return result;
}

template <auto Entry>
CUresult CUDAAPI import_handle(CUmemGenericAllocationHandle* handle, void* shared, CUmemAllocationHandleType type) {
  const CUresult result = (real.*Entry)(handle, shared, type);
  if (result == CUDA_SUCCESS) note_handle(unwatched::opened, *handle);
  return result;
}

template <auto Entry>
CUresult CUDAAPI map_handle(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                            CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const CUresult result = (real.*Entry)(address, bytes, offset, handle, flags);
  interposer* const hpe = result == CUDA_SUCCESS ? interposer::instance() : nullptr;
  if (hpe != nullptr)
    if (const auto how = hpe->uses().maps(handle, {address, address + bytes})) note_shared(*how, address, bytes);
  return result;
}

template <auto Entry>
CUresult CUDAAPI release_handle(CUmemGenericAllocationHandle handle) {
  if (interposer* const hpe = interposer::started()) hpe->uses().releases(handle);
  return (real.*Entry)(handle);
}

template <auto Entry>
CUresult CUDAAPI map_graphics(CUdeviceptr* address, std::size_t* bytes, CUgraphicsResource resource) {
  const CUresult result = (real.*Entry)(address, bytes, resource);
  if (result == CUDA_SUCCESS && address != nullptr) note_shared(unwatched::graphics, *address, bytes ? *bytes : 0);
  return result;
}

inline void warn_of_wait(CUdeviceptr address) {
  adopted_memory& adopted = interposer::started()->adopted();
  const adopted_region::bytes region = adopted.touched(address);
  if (region.begin != region.end) interposer::started()->uses().warn(unwatched::awaited, region);
}

template <auto Entry, class Value>
CUresult CUDAAPI await_value(CUstream stream, CUdeviceptr address, Value value, unsigned flags) {
  if (adopted_memory::any()) [[unlikely]]
    warn_of_wait(address);
  const auto wait = [&] {
    const device_work work{{address, sizeof value, false}};
    if (work.failed()) return work.result();
    return (real.*Entry)(stream, address, value, flags);
  };
  oversubscribed* const all = oversubscribed::active();
  return all == nullptr ? wait() : all->run(named(stream, legacy), use_of_arguments(*all, address), wait);
}

template <auto Entry>
CUresult CUDAAPI batch(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags) {
  if (adopted_memory::any() && operations != nullptr) [[unlikely]]
    for (unsigned i = 0; i < count; ++i)
      if (const auto op = operations[i].operation;
          op == CU_STREAM_MEM_OP_WAIT_VALUE_32 || op == CU_STREAM_MEM_OP_WAIT_VALUE_64)
        warn_of_wait(operations[i].waitValue.address);
  return any_work<Entry>(stream, count, operations, flags);
}

/// The memory of a texture must be on the device while the driver looks at it, and for each launch from then on.
template <auto Entry>
CUresult make_texture_in_memory(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                                const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  const auto make = [&] { return (real.*Entry)(object, resource, texture, view); };
  oversubscribed* const all = resource != nullptr ? oversubscribed::active() : nullptr;
  if (all == nullptr) return make();
  CUdeviceptr address = 0;
  if (resource->resType == CU_RESOURCE_TYPE_LINEAR) address = resource->res.linear.devPtr;
  if (resource->resType == CU_RESOURCE_TYPE_PITCH2D) address = resource->res.pitch2D.devPtr;
  all->objects().use_in_every_launch(address);
  return all->run(default_stream(legacy), use_of_arguments(*all, address), make);
}

template <auto Entry>
CUresult CUDAAPI make_texture(CUtexObject* object, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* texture,
                              const CUDA_RESOURCE_VIEW_DESC* view) {
  const CUresult result = make_texture_in_memory<Entry>(object, resource, texture, view);
  interposer* const hpe = result == CUDA_SUCCESS ? interposer::started() : nullptr;
  if (hpe != nullptr && resource->resType == CU_RESOURCE_TYPE_LINEAR)
    hpe->uses().add_texture(*object, resource->res.linear.devPtr);
  if (hpe != nullptr && resource->resType == CU_RESOURCE_TYPE_PITCH2D)
    hpe->uses().add_texture(*object, resource->res.pitch2D.devPtr);
  return result;
}

template <auto Entry>
CUresult CUDAAPI end_texture(CUtexObject object) {
  if (interposer* const hpe = interposer::started()) hpe->uses().remove_texture(object);
  return (real.*Entry)(object);
}

// Contexts other than the primary ones: touches must wait for their work, too.
template <auto Entry, class... How>
CUresult CUDAAPI make_context(CUcontext* context, How... how) {
  const CUresult result = (real.*Entry)(context, how...);
  // For a program that is spread, work in contexts counts that were made before the primary one.
  interposer* const hpe = spreading::wanted() ? interposer::instance() : interposer::started();
  if (hpe != nullptr && result == CUDA_SUCCESS) hpe->program().add(*context);
  return result;
}

template <auto Entry>
CUresult CUDAAPI make_green(CUgreenCtx* made, CUdevResourceDesc resources, CUdevice device, unsigned flags) {
  const CUresult result = (real.*Entry)(made, resources, device, flags);
  if (interposer* const hpe = interposer::started(); hpe != nullptr && result == CUDA_SUCCESS)
    hpe->program().add_green(*made);
  return result;
}

template <auto Entry>
CUresult CUDAAPI end_green(CUgreenCtx green) {
  if (spreading* const s = spreading::active()) {
    CUcontext context = nullptr;
    const auto context_of = interposer::started()->driver().cuCtxFromGreenCtx;
    if (context_of != nullptr && context_of(&context, green) == CUDA_SUCCESS) s->ends_context(context);
  }
  if (interposer* const hpe = interposer::started()) {
    hpe->forget_contexts();
    hpe->program().remove_green(green);
  }
  return (real.*Entry)(green);
}

// This call may end a context and free memory in it.
template <auto Entry, class Which>
CUresult CUDAAPI context_change(Which which) {
  if (spreading* const s = spreading::active()) {
    if constexpr (std::is_same_v<Which, CUcontext>)
      s->ends_context(which);
    else
      s->ends_context(nullptr);
  }
  if (interposer* const hpe = interposer::started()) {
    hpe->forget_contexts();
    if constexpr (std::is_same_v<Which, CUcontext>) hpe->program().remove(which);
  }
  return (real.*Entry)(which);
}

template <auto Entry>
CUresult CUDAAPI reset_context(CUdevice device) {
  if (const auto done = reset_larger(device)) return *done;
  if (spreading* const s = device == 0 ? spreading::active() : nullptr) s->resets();
  return context_change<Entry>(device);
}

}  // namespace

}  // namespace hpe::cuda_hooks
