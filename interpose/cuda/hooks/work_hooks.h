#pragma once

/// The hooks of launches, memory and contexts. Only hook_table.cpp includes this file.

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "interpose/cuda/hooks/real_entries.h"
#include "interpose/cuda/hooks/spread_hooks.h"
#include "interpose/cuda/interposer.h"
#include "interpose/cuda/spread/noted_write.h"
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

// Among entries that take any work, those whose first argument is an address write memory there, and only there.
template <class... Others>
noted_write write_of(CUstream stream, CUdeviceptr to, Others... /*others*/) {
  return {stream, to};
}
template <class... Arguments>
noted_write write_of(CUstream stream, Arguments... /*arguments*/) {
  return noted_write(stream);
}

template <auto Entry, class... Arguments>
CUresult CUDAAPI any_work(Arguments... arguments) {
  const noted_write note = write_of(stream_among(arguments...), arguments...);
  const device_work work(stream_among(arguments...));
  if (work.failed()) return work.result();
  return (real.*Entry)(arguments...);
}

template <auto Entry, class... Arguments>
[[gnu::noinline, gnu::cold]] CUresult launch_watched(CUstream stream, const kernel_launch& kernel,
                                                     Arguments... arguments) {
  const trace::recorded here(trace::category::call, "launch of a kernel");
  const device_work work(stream, kernel);
  if (work.failed()) return work.result();
  return (real.*Entry)(arguments...);
}

constexpr const char* launch_is_cooperative = "its launch is cooperative, so its blocks may wait for each other";
constexpr const char* launch_overlaps_others = "its launch may begin or be awaited before others have ended";

// Most launches do not concern hpe. For them this adds only the stores of queuing_threads, and the arguments stay in
// registers.
template <auto Entry, class... Arguments>
[[gnu::always_inline]] inline CUresult launch_of(CUstream stream, const kernel_launch& kernel, Arguments... arguments) {
  {
    const queuing_threads::visit here(stream);
    counters::add(trace::status_page::own().count.launches, 1);
    if (!adopted_memory::any() && trace::recorder::active() == nullptr) [[likely]]
      return (real.*Entry)(arguments...);
  }
  return launch_watched<Entry>(stream, kernel, arguments...);
}

// A program whose launches run on several GPUs.
template <auto Entry, class... Arguments>
[[gnu::noinline, gnu::cold]] CUresult launch_spread(const spread_launch& what, Arguments... arguments) {
  const trace::recorded here(trace::category::call, "launch of a kernel");
  const device_work work(what.stream, {what.function, what.parameters, what.extra});
  if (work.failed()) return work.result();
  counters::add(trace::status_page::own().count.launches, 1);
  const auto alone = [=] { return (real.*Entry)(arguments...); };
  return spreading::active()->launch(what, std::ref(alone));
}

inline const char* obstacle_of(const CUlaunchConfig& how) {
  for (unsigned n = 0; n < how.numAttrs; ++n) {
    const CUlaunchAttributeValue& value = how.attrs[n].value;
    switch (how.attrs[n].id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        if (value.cooperative != 0) return launch_is_cooperative;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (value.clusterDim.x * value.clusterDim.y * value.clusterDim.z > 1)
          return "its launch asks for clusters, which share memory of one device";
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        if (value.programmaticStreamSerializationAllowed != 0) return launch_overlaps_others;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: return launch_overlaps_others;
      default: break;
    }
  }
  return nullptr;
}

// cuLaunchKernel and its cooperative form, which has no `extra`.
template <auto Entry, flavour Flavour, class... Extra>
CUresult CUDAAPI launch(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void** parameters, Extra... extra) {
  if (spreading::active() != nullptr) [[unlikely]] {
    const spread_launch what{function,
                             {gx, gy, gz},
                             {bx, by, bz},
                             shared,
                             named(stream, Flavour),
                             parameters,
                             kernel_launch{function, parameters, extra...}.extra,
                             sizeof...(extra) == 0 ? launch_is_cooperative : nullptr};
    return launch_spread<Entry>(what, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra...);
  }
  return launch_of<Entry>(named(stream, Flavour), {function, parameters, extra...}, function, gx, gy, gz, bx, by, bz,
                          shared, stream, parameters, extra...);
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI launch_extended(const CUlaunchConfig* configuration, CUfunction function, void** parameters,
                                 void** extra) {
  if (spreading::active() != nullptr && configuration != nullptr) [[unlikely]] {
    const CUlaunchConfig& c = *configuration;
    const spread_launch what{function,
                             {c.gridDimX, c.gridDimY, c.gridDimZ},
                             {c.blockDimX, c.blockDimY, c.blockDimZ},
                             c.sharedMemBytes,
                             named(c.hStream, Flavour),
                             parameters,
                             extra,
                             obstacle_of(c)};
    return launch_spread<Entry>(what, configuration, function, parameters, extra);
  }
  return launch_of<Entry>(named(configuration != nullptr ? configuration->hStream : nullptr, Flavour),
                          {function, parameters, extra}, configuration, function, parameters, extra);
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
  const queuing_threads::queued_so_far queued;
  const CUresult result = with_failures((real.*Entry)(context...));
  if (result == CUDA_SUCCESS && interposer::started()->program().are_one()) queued.done();
  return result;
}

// Every context has default streams of its own.
template <auto Entry, flavour Flavour>
CUresult CUDAAPI wait_for_stream(CUstream stream) {
  const waiting_call here("cuStreamSynchronize", stream);
  if (!queuing_threads::watched()) return with_failures((real.*Entry)(stream));
  const CUstream waited = named(stream, Flavour);
  const queuing_threads::queued_so_far queued(waited);
  const CUresult result = with_failures((real.*Entry)(stream));
  const bool of_each = waited == CU_STREAM_LEGACY || waited == CU_STREAM_PER_THREAD;
  if (result == CUDA_SUCCESS && (!of_each || interposer::started()->program().are_one())) queued.done();
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
  if (interposer* const hpe = interposer::started()) hpe->program().ends_capture(stream);
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
CUresult CUDAAPI launch_graph(CUgraphExec graph, CUstream stream) {
  if (interposer* const hpe = interposer::started()) hpe->launches_graph();
  counters::add(trace::status_page::own().count.launches, 1);
  return any_work<Entry>(graph, stream);
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
  const device_work work{{address, sizeof value, false}};
  if (work.failed()) return work.result();
  return (real.*Entry)(stream, address, value, flags);
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

template <auto Entry>
CUresult CUDAAPI make_texture(CUtexObject* object, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* texture,
                              const CUDA_RESOURCE_VIEW_DESC* view) {
  const CUresult result = (real.*Entry)(object, resource, texture, view);
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
  if (interposer* const hpe = interposer::started(); hpe != nullptr && result == CUDA_SUCCESS)
    hpe->program().add(*context);
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
  if (interposer* const hpe = interposer::started()) {
    hpe->forget_contexts();
    hpe->program().remove_green(green);
  }
  return (real.*Entry)(green);
}

// This call may end a context and free memory in it.
template <auto Entry, class Which>
CUresult CUDAAPI context_change(Which which) {
  if (interposer* const hpe = interposer::started()) {
    hpe->forget_contexts();
    if constexpr (std::is_same_v<Which, CUcontext>) hpe->program().remove(which);
  }
  return (real.*Entry)(which);
}

template <auto Entry>
CUresult CUDAAPI reset_context(CUdevice device) {
  if (spreading* const s = device == 0 ? spreading::active() : nullptr) s->resets();
  return context_change<Entry>(device);
}

}  // namespace

}  // namespace hpe::cuda_hooks
