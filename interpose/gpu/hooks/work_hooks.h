#pragma once

/// The hooks for device work other than launches and copies, for functions of the program that the driver calls, and
/// for captures, streams and textures. Only hook_table.cpp and other files of hooks include this file.

#include <memory>
#include <type_traits>

#include "interpose/gpu/hooks/memory_hooks.h"
#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/hooks/real_entries.h"
#include "interpose/gpu/hooks/wait_hooks.h"
#include "interpose/gpu/interposer.h"
#include "interpose/gpu/work/default_stream.h"
#include "interpose/gpu/work/enqueue_guard.h"

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
  const enqueue_guard work(stream_among(arguments...));
  if (work.failed()) return work.result();
  return (real.*Entry)(arguments...);
}

// Runs work other than copies, fills and launches. queue() queues the work on the stream `in`, which is nullptr if the
// stream is not known. `instance`: the graph that is launched.
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

// ---- functions of the program that the driver calls -----------------------------------------------------------------

/// A function of the program, its argument, and the watch by which a kind of memory observes the function. The object
/// deletes itself when the function has returned.
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
  tell_divided(named(stream, Flavour), division::before_wait);
  return watched_function<>::queue(named(stream, Flavour), call, argument, [&](CUhostFn function, void* with) {
    return (real.*Entry)(stream, function, with);
  });
}
template <auto Entry, flavour Flavour>
CUresult CUDAAPI queue_callback(CUstream stream, CUstreamCallback call, void* argument, unsigned flags) {
  tell_divided(named(stream, Flavour), division::before_wait);
  return watched_function<CUstream, CUresult>::queue(
      named(stream, Flavour), call, argument,
      [&](CUstreamCallback function, void* with) { return (real.*Entry)(stream, function, with, flags); });
}

inline void tell_of_captures(int change) {
  if (change != 0) memory_kinds::each([&](memory_kind& kind) { kind.change_captures(change); });
}

template <auto Entry, flavour Flavour, class... Arguments>
CUresult CUDAAPI begin_capture(CUstream stream, Arguments... arguments) {
  interposer* const hpe = interposer::instance();
  if (hpe != nullptr) tell_of_captures(hpe->program().begins_capture(named(stream, Flavour)));
  const CUresult result = (real.*Entry)(stream, arguments...);
  if (hpe != nullptr && result != CUDA_SUCCESS) tell_of_captures(-hpe->program().ends_capture(named(stream, Flavour)));
  return result;
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI end_capture(CUstream stream, CUgraph* graph) {
  interposer* const hpe = interposer::started();
  const int ended = hpe != nullptr ? hpe->program().ends_capture(named(stream, Flavour)) : 0;
  const CUresult result = (real.*Entry)(stream, graph);
  if (ended != 0 && result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) {  // the capture goes on
    hpe->program().begins_capture(named(stream, Flavour));
    return result;
  }
  tell_of_captures(-ended);
  return result;
}

// Destroys a stream, and so also ends the stream's capture.
template <auto Entry>
CUresult CUDAAPI end_stream(CUstream stream) {
  if (interposer* const hpe = interposer::started()) {
    tell_of_captures(-hpe->program().ends_capture(stream));
    hpe->queued().ends(stream);
  }
  memory_kinds::each([&](memory_kind& kind) { kind.ends(stream); });
  return (real.*Entry)(stream);
}

template <auto Entry>
CUresult CUDAAPI add_free_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                               CUdeviceptr address) {
  // Records the address before the driver's call, because hpe could not remove the node if the recording failed
  // afterwards. A record without a node does no harm.
  if (interposer* const hpe = interposer::instance()) hpe->freed_by_graphs().add(graph, address);
  return (real.*Entry)(node, graph, after, count, address);
}

inline void warn_of_wait(CUdeviceptr address) {
  adopted_memory& adopted = interposer::started()->adopted();
  const adopted_region::bytes region = adopted.touched(address);
  if (region.begin != region.end) interposer::started()->uses().warn(incoherent_use::awaited, region);
}

template <auto Entry, class Value>
CUresult CUDAAPI await_value(CUstream stream, CUdeviceptr address, Value value, unsigned flags) {
  tell_divided(named(stream, legacy), division::before_wait);
  if (adopted_memory::any()) [[unlikely]]
    warn_of_wait(address);
  const auto wait = [&] {
    const enqueue_guard work{{address, sizeof value, false}};
    if (work.failed()) return work.result();
    return (real.*Entry)(stream, address, value, flags);
  };
  return ordered(run_other(
                     named(stream, legacy), [&] { return uses_of(address); }, wait),
                 {.what = order_kind::stream_waits, .stream = named(stream, legacy)});
}

template <auto Entry, class Value>
CUresult CUDAAPI write_value(CUstream stream, CUdeviceptr address, Value value, unsigned flags) {
  const CUresult result = any_work<Entry>(stream, address, value, flags);
  if (result == CUDA_SUCCESS) tell_divided(named(stream, legacy), division::mark);
  return result;
}

// The memory of stream memory operations. Operations that are newer than hpe may use any memory.
inline memory_uses uses_of_operations(unsigned count, const CUstreamBatchMemOpParams* operations) {
  memory_uses result{.anything = operations == nullptr};
  for (unsigned i = 0; i < count && !result.anything; ++i) {
    switch (operations[i].operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64: result.words.push_back(operations[i].waitValue.address); break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64: result.words.push_back(operations[i].writeValue.address); break;
      case CU_STREAM_MEM_OP_BARRIER:
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: break;
      default: result.anything = true;
    }
  }
  return result;
}

template <auto Entry>
CUresult CUDAAPI batch(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags) {
  CUstream const in = named(stream, legacy);
  tell_divided(in, division::before_wait);
  if (adopted_memory::any() && operations != nullptr) [[unlikely]]
    for (unsigned i = 0; i < count; ++i)
      if (const auto op = operations[i].operation;
          op == CU_STREAM_MEM_OP_WAIT_VALUE_32 || op == CU_STREAM_MEM_OP_WAIT_VALUE_64)
        warn_of_wait(operations[i].waitValue.address);
  const CUresult result = run_other(
      in, [&] { return uses_of_operations(count, operations); },
      [&] { return any_work_in_memory<Entry>(stream, count, operations, flags); });
  if (result == CUDA_SUCCESS) tell_divided(in, division::mark);
  return ordered(result, {.what = order_kind::stream_waits, .stream = in});
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

}  // namespace

}  // namespace hpe::cuda_hooks
