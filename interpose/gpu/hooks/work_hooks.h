#pragma once

/// The hooks for waits, memory and contexts, and for device work other than launches and copies. Only hook_table.cpp
/// includes this file.

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "interpose/gpu/hooks/memory_hooks.h"
#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/hooks/real_entries.h"
#include "interpose/gpu/interposer.h"
#include "interpose/gpu/work/device_work.h"
#include "runtime/trace/measured.h"
#include "runtime/trace/stalls.h"
#include "runtime/trace/status_page.h"

namespace hpe::cuda_hooks {

namespace {

// Returns the stream among the arguments of an entry. Returns unknown_stream() if no argument is a stream, or if the
// stream is null: which default stream a null stream means depends on the entry.
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

// Runs work other than copies, fills and launches. queue() queues the work on the stream `in`, which is nullptr if the
// stream is not known.
// `instance`: the graph that is launched.
template <class Uses, class Queue>
CUresult run_other(CUstream in, const Uses& uses, const Queue& queue, CUgraphExec instance = nullptr) {
  const auto describe = [&]() -> device_call { return {.stream = in, .uses = uses(), .instance = instance}; };
  const auto elsewhere = memory_kinds::first(
      [&](memory_kind& kind) { return kind.run(describe(), [&](const box_part&) { return queue(); }); });
  return observed(elsewhere ? *elsewhere : queue(), describe);
}

// Returns the memory that the work of an entry uses: the allocations whose addresses are among the arguments, or any
// memory if no argument is an address.
template <class... Arguments>
memory_uses uses_of(Arguments... arguments) {
  memory_uses result{.anything = true};
  const auto note = [&](auto argument) {
    if constexpr (std::is_same_v<decltype(argument), CUdeviceptr>) {
      result.anything = false;
      result.words.push_back(argument);
    }
  };
  (note(arguments), ...);
  return result;
}

template <auto Entry, class... Arguments>
CUresult CUDAAPI any_work(Arguments... arguments) {
  const CUstream in = stream_among(arguments...);
  return run_other(
      in == unknown_stream() ? nullptr : in, [&] { return uses_of(arguments...); },
      [&] { return any_work_in_memory<Entry>(arguments...); });
}

// ---- waits of the program -------------------------------------------------------------------------------------------

// Returns the text for trace::awaited, from the name of the entry and the handle that the program passed.
inline std::string words_for_call(const void* entry, std::uint64_t handle, std::uint64_t /*none*/) {
  return fmt::format("{}({:#x}) waits for work that the program queued on devices", static_cast<const char*>(entry),
                     handle);
}

// Returns `result`, the result of a wait by the program, if it is an error. Otherwise returns the error of work that
// hpe has run for the program on another GPU, because the program's own GPU does not report this error.
inline CUresult with_failures(CUresult result) {
  memory_kinds::each([&](memory_kind& kind) {
    if (result == CUDA_SUCCESS) result = kind.failure();
  });
  return result;
}

// While this object exists, the trace shows that the thread waits in a call of the driver.
class waiting_driver_call : trace::awaited {
 public:
  explicit waiting_driver_call(const char* entry, const void* handle = nullptr) noexcept
      : awaited({words_for_call, entry, reinterpret_cast<std::uintptr_t>(handle)}) {}
};

// Lets the kinds of memory observe a step, if `result` is CUDA_SUCCESS, or an error of the context, whose work has
// ended then. Returns `result`.
inline CUresult ordered(CUresult result, const order_step& step) {
  if (result == CUDA_SUCCESS || device::cuda::kills_context(result))
    let_observe([&](memory_kind& kind) { kind.ordered(step); });
  return result;
}
using order_kind = order_step::kind;

template <auto Entry, class... Context>
CUresult wait_for_work_of(Context... context) {
  const waiting_driver_call here("cuCtxSynchronize", context...);
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

template <auto Entry, class... Context>
CUresult CUDAAPI wait_for_context(Context... context) {
  CUcontext waited = nullptr;
  ((waited = context), ...);
  return ordered(wait_for_work_of<Entry>(context...), {.what = order_kind::waited_for_context, .context = waited});
}

// Each context has its own default streams, so a wait for a default stream covers all work on default streams only if
// the program has one context.
template <auto Entry, flavour Flavour>
CUresult wait_for_work_on(CUstream stream) {
  const waiting_driver_call here("cuStreamSynchronize", stream);
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

template <auto Entry, flavour Flavour>
CUresult CUDAAPI wait_for_stream(CUstream stream) {
  return ordered(wait_for_work_on<Entry, Flavour>(stream),
                 {.what = order_kind::waited_for_stream, .stream = named(stream, Flavour)});
}
template <auto Entry, flavour Flavour>
CUresult CUDAAPI query_stream(CUstream stream) {
  return ordered((real.*Entry)(stream), {.what = order_kind::waited_for_stream, .stream = named(stream, Flavour)});
}

// ---- events ---------------------------------------------------------------------------------------------------------

template <auto Entry>
CUresult CUDAAPI wait_for_event(CUevent event) {
  const waiting_driver_call here("cuEventSynchronize", event);
  return ordered(with_failures((real.*Entry)(event)), {.what = order_kind::waited_for_event, .event = event});
}
template <auto Entry>
CUresult CUDAAPI query_event(CUevent event) {
  return ordered((real.*Entry)(event), {.what = order_kind::waited_for_event, .event = event});
}
template <auto Entry, flavour Flavour, class... Flags>
CUresult CUDAAPI record_event(CUevent event, CUstream stream, Flags... flags) {
  return ordered((real.*Entry)(event, stream, flags...),
                 {.what = order_kind::recorded, .stream = named(stream, Flavour), .event = event});
}
template <auto Entry, flavour Flavour>
CUresult CUDAAPI let_stream_wait(CUstream stream, CUevent event, unsigned flags) {
  return ordered((real.*Entry)(stream, event, flags),
                 {.what = order_kind::stream_waits, .stream = named(stream, Flavour), .event = event});
}
template <auto Entry, flavour Flavour>
CUresult CUDAAPI let_stream_wait_outside(const CUexternalSemaphore* what,
                                         const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* how, unsigned count,
                                         CUstream stream) {
  return ordered((real.*Entry)(what, how, count, stream),
                 {.what = order_kind::stream_waits, .stream = named(stream, Flavour)});
}
template <auto Entry>
CUresult CUDAAPI end_event(CUevent event) {
  ordered(CUDA_SUCCESS, {.what = order_kind::event_ends, .event = event});
  return (real.*Entry)(event);
}
template <auto Entry>
CUresult CUDAAPI share_event(CUipcEventHandle* handle, CUevent event) {
  return ordered((real.*Entry)(handle, event), {.what = order_kind::event_is_shared, .event = event});
}
template <auto Entry>
CUresult CUDAAPI open_event(CUevent* event, CUipcEventHandle handle) {
  const CUresult result = (real.*Entry)(event, handle);
  return result == CUDA_SUCCESS ? ordered(result, {.what = order_kind::event_is_shared, .event = *event}) : result;
}

// ---- functions of the program that the driver calls -----------------------------------------------------------------

/// A function and its argument, with the watch of a kind of memory. Deletes itself when the function has returned.
template <class... Arguments>
struct watched_function {
  using function = void(CUDAAPI*)(Arguments..., void*);
  function call;
  void* argument;
  std::unique_ptr<host_function_watch> watch;

  static void CUDAAPI run(Arguments... arguments, void* self) {
    const std::unique_ptr<watched_function> own(static_cast<watched_function*>(self));
    own->watch->begins();
    own->call(arguments..., own->argument);
    own->watch->ends();
  }

  /// Queues the function by by_driver(function, argument), with a watch if a kind of memory has one for it.
  template <class ByDriver>
  static CUresult queue(CUstream stream, function call, void* argument, const ByDriver& by_driver) {
    std::unique_ptr<host_function_watch> watch;
    if (call != nullptr)
      let_observe([&](memory_kind& kind) {
        if (watch == nullptr) watch = kind.watch_function(stream);
      });
    if (watch == nullptr) return by_driver(call, argument);
    auto made = std::make_unique<watched_function>(watched_function{call, argument, std::move(watch)});
    const CUresult result = by_driver(&run, made.get());
    if (result == CUDA_SUCCESS) static_cast<void>(made.release());
    return result;
  }
};

template <auto Entry, flavour Flavour>
CUresult CUDAAPI queue_host_function(CUstream stream, CUhostFn call, void* argument) {
  return watched_function<>::queue(named(stream, Flavour), call, argument, [&](CUhostFn function, void* with) {
    return (real.*Entry)(stream, function, with);
  });
}
template <auto Entry, flavour Flavour>
CUresult CUDAAPI queue_callback(CUstream stream, CUstreamCallback call, void* argument, unsigned flags) {
  return watched_function<CUstream, CUresult>::queue(
      named(stream, Flavour), call, argument,
      [&](CUstreamCallback function, void* with) { return (real.*Entry)(stream, function, with, flags); });
}

template <auto Entry, flavour Flavour, class... Arguments>
CUresult CUDAAPI begin_capture(CUstream stream, Arguments... arguments) {
  interposer* const hpe = interposer::instance();
  if (hpe != nullptr) hpe->program().begins_capture(named(stream, Flavour));
  const CUresult result = (real.*Entry)(stream, arguments...);
  if (hpe != nullptr && result != CUDA_SUCCESS) hpe->program().ends_capture(named(stream, Flavour));
  return result;
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI end_capture(CUstream stream, CUgraph* graph) {
  if (interposer* const hpe = interposer::started()) hpe->program().ends_capture(named(stream, Flavour));
  return (real.*Entry)(stream, graph);
}

// Destroys a stream, and so also ends the stream's capture.
template <auto Entry>
CUresult CUDAAPI end_stream(CUstream stream) {
  if (interposer* const hpe = interposer::started()) {
    hpe->program().ends_capture(stream);
    hpe->queued().ends(stream);
  }
  memory_kinds::each([&](memory_kind& kind) { kind.ends(stream); });
  return (real.*Entry)(stream);
}

template <auto Entry>
CUresult CUDAAPI retain_context(CUcontext* context, CUdevice device) {
  interposer* const hpe = memory_kinds::any() ? interposer::instance() : interposer::started();
  const CUresult result = (real.*Entry)(context, device);
  if (hpe == nullptr || result != CUDA_SUCCESS) return result;
  hpe->program().retained(*context);
  memory_kinds::each([&](memory_kind& kind) { kind.has_context(device); });
  return result;
}

template <auto Entry>
CUresult CUDAAPI add_free_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                               CUdeviceptr address) {
  // Records the address before the driver's call, because hpe could not remove the node if the recording failed
  // afterwards. A record without a node does no harm.
  if (interposer* const hpe = interposer::instance()) hpe->freed_by_graphs().add(graph, address);
  return (real.*Entry)(node, graph, after, count, address);
}

template <auto Entry>
CUresult CUDAAPI unmap(CUdeviceptr address, std::size_t bytes) {
  if (interposer* const hpe = interposer::started()) hpe->gives_back(address, bytes);
  const CUresult result = (real.*Entry)(address, bytes);
  if (result == CUDA_SUCCESS) tell_driver_allocation({driver_allocation_event::step::unmapped, address, bytes, 0});
  return result;
}

// ---- memory and contexts whose uses hpe cannot see ------------------------------------------------------------------

/// Runs note(), whose only purpose is a warning. If host memory is too short, hpe does not print the warning.
template <class Note>
void for_warnings(const Note& note) {
  try {
    note();
  } catch (const std::bad_alloc&) {
  }
}

inline void note_shared(incoherent_use how, CUdeviceptr address, std::size_t bytes) {
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

inline void warn_of_wait(CUdeviceptr address) {
  adopted_memory& adopted = interposer::started()->adopted();
  const adopted_region::bytes region = adopted.touched(address);
  if (region.begin != region.end) interposer::started()->uses().warn(incoherent_use::awaited, region);
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
  return ordered(run_other(
                     named(stream, legacy), [&] { return uses_of(address); }, wait),
                 {.what = order_kind::stream_waits, .stream = named(stream, legacy)});
}

template <auto Entry>
CUresult CUDAAPI batch(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags) {
  if (adopted_memory::any() && operations != nullptr) [[unlikely]]
    for (unsigned i = 0; i < count; ++i)
      if (const auto op = operations[i].operation;
          op == CU_STREAM_MEM_OP_WAIT_VALUE_32 || op == CU_STREAM_MEM_OP_WAIT_VALUE_64)
        warn_of_wait(operations[i].waitValue.address);
  return ordered(any_work<Entry>(stream, count, operations, flags),
                 {.what = order_kind::stream_waits, .stream = named(stream, legacy)});
}

/// Lets the driver create a texture. The texture's memory must be on the device during this call, because the driver
/// inspects the memory, and during each later launch.
template <auto Entry>
CUresult make_texture_in_memory(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                                const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  const auto make = [&] { return (real.*Entry)(object, resource, texture, view); };
  CUdeviceptr address = 0;
  if (resource != nullptr && resource->resType == CU_RESOURCE_TYPE_LINEAR) address = resource->res.linear.devPtr;
  if (resource != nullptr && resource->resType == CU_RESOURCE_TYPE_PITCH2D) address = resource->res.pitch2D.devPtr;
  if (address == 0) return make();
  memory_kinds::each([&](memory_kind& kind) { kind.named_by_handle(address); });
  return run_other(
      default_stream(legacy), [&] { return uses_of(address); }, make);
}

template <auto Entry>
CUresult CUDAAPI make_texture(CUtexObject* object, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* texture,
                              const CUDA_RESOURCE_VIEW_DESC* view) {
  const CUresult result = make_texture_in_memory<Entry>(object, resource, texture, view);
  interposer* const hpe = result == CUDA_SUCCESS ? interposer::started() : nullptr;
  if (hpe == nullptr) return result;
  or_undo(
      [&] {
        if (resource->resType == CU_RESOURCE_TYPE_LINEAR) hpe->uses().add_texture(*object, resource->res.linear.devPtr);
        if (resource->resType == CU_RESOURCE_TYPE_PITCH2D)
          hpe->uses().add_texture(*object, resource->res.pitch2D.devPtr);
      },
      [&] { (real.cuTexObjectDestroy)(*object); });
  return result;
}

template <auto Entry>
CUresult CUDAAPI end_texture(CUtexObject object) {
  if (interposer* const hpe = interposer::started()) hpe->uses().remove_texture(object);
  return (real.*Entry)(object);
}

// The hook for an entry that creates a context other than a primary one. Records the context, so that touches by CPU
// code also wait for the work in this context.
template <auto Entry, class... How>
CUresult CUDAAPI make_context(CUcontext* context, How... how) {
  const CUresult result = (real.*Entry)(context, how...);
  if (result != CUDA_SUCCESS) return result;
  or_undo(
      [&] {
        // Kinds of memory need a record of all contexts, including contexts that the program creates before the primary
        // one.
        interposer* const hpe = memory_kinds::any() ? interposer::instance() : interposer::started();
        if (hpe != nullptr) hpe->program().add(*context);
      },
      [&] { (real.cuCtxDestroy_v2)(*context); });
  return result;
}

template <auto Entry>
CUresult CUDAAPI make_green(CUgreenCtx* made, CUdevResourceDesc resources, CUdevice device, unsigned flags) {
  const CUresult result = (real.*Entry)(made, resources, device, flags);
  if (interposer* const hpe = interposer::started(); hpe != nullptr && result == CUDA_SUCCESS)
    or_undo([&] { hpe->program().add_green(*made); }, [&] { (real.cuGreenCtxDestroy)(*made); });
  return result;
}

template <auto Entry>
CUresult CUDAAPI end_green(CUgreenCtx green) {
  if (interposer* const hpe = interposer::started()) {
    CUcontext context = nullptr;
    const auto context_of = hpe->driver().cuCtxFromGreenCtx;
    if (context_of != nullptr && context_of(&context, green) == CUDA_SUCCESS)
      memory_kinds::each([&](memory_kind& kind) { kind.ends(context); });
    hpe->forget_contexts();
    hpe->program().remove_green(green);
  }
  parameter_sizes::of_process().forget();  // as unload() does
  return (real.*Entry)(green);
}

// The hook for an entry that may destroy a context and free the memory in it.
template <auto Entry, class Which>
CUresult CUDAAPI context_change(Which which) {
  CUcontext ended = nullptr;
  if constexpr (std::is_same_v<Which, CUcontext>) ended = which;
  memory_kinds::each([&](memory_kind& kind) { kind.ends(ended); });
  if (interposer* const hpe = interposer::started()) {
    hpe->forget_contexts();
    if constexpr (std::is_same_v<Which, CUcontext>) hpe->program().remove(which);
  }
  if constexpr (!std::is_same_v<Which, CUmemoryPool>) parameter_sizes::of_process().forget();  // as unload() does
  return (real.*Entry)(which);
}

template <auto Entry>
CUresult CUDAAPI reset_context(CUdevice device) {
  if (const auto elsewhere = memory_kinds::first([&](memory_kind& kind) { return kind.reset(device); }))
    return *elsewhere;
  return context_change<Entry>(device);
}

}  // namespace

}  // namespace hpe::cuda_hooks
