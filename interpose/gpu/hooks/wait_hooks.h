#pragma once

/// The hooks for waits and events. Only hook_table.cpp and other files of hooks include this file.

#include <fmt/core.h>

#include "interpose/gpu/hooks/memory_hooks.h"
#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/hooks/real_entries.h"
#include "interpose/gpu/interposer.h"
#include "interpose/gpu/work/default_stream.h"
#include "interpose/gpu/work/queued_uses.h"
#include "interpose/gpu/work/queuing_threads.h"
#include "runtime/trace/measured.h"
#include "runtime/trace/stalls.h"
#include "runtime/trace/status_page.h"

namespace hpe::cuda_hooks {

namespace {

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

using device::cuda::division;

inline void tell_divided(std::optional<CUstream> stream, division where) {
  memory_kinds::each([&](memory_kind& kind) { kind.divided(stream, where); });
}

// Lets the kinds of memory observe a step, if `result` is CUDA_SUCCESS, or an error of the context, whose work has
// ended then. Returns `result`.
inline CUresult ordered(CUresult result, const order_step& step) {
  if (result == CUDA_SUCCESS || device::cuda::kills_context(result))
    let_observe([&](memory_kind& kind) { kind.ordered(step); });
  return result;
}
using order_kind = order_step::kind;

// Likewise, for a step that divides the earlier work from the later work of a stream; without a stream, of all streams.
inline CUresult dividing(std::optional<CUstream> stream, division where, CUresult result, const order_step& step) {
  if (result == CUDA_SUCCESS) tell_divided(stream, where);
  return ordered(result, step);
}

// Likewise, for a wait for a stream. If the program has several contexts, the wait for a default stream may have been a
// wait for the default stream of another context.
inline CUresult divided_by_wait(CUstream stream, CUresult result) {
  interposer* const hpe = interposer::started();
  const bool is_certain = !is_default(stream) || hpe == nullptr || hpe->program().are_one();
  return dividing(stream, is_certain ? division::waited : division::perhaps_idle, result,
                  {.what = order_kind::waited_for_stream, .stream = stream});
}

// Calls wait(), in which the driver waits for the work on a stream, or, without a stream, for all work of the current
// context. If the wait succeeds, records that this work is done. is_of_one_context: whether the wait covers only one
// context, although the records do not distinguish contexts. Then the program must have only one context. Each context
// has its own default streams.
template <class Wait, class... Stream>
CUresult wait_and_record(bool is_of_one_context, const Wait& wait, Stream... stream) {
  if (!queuing_threads::watched()) return wait();
  interposer& hpe = *interposer::started();
  const std::uint64_t noted = hpe.queued().so_far();
  const queuing_threads::queued_so_far queued(stream...);
  const CUresult result = wait();
  if (result != CUDA_SUCCESS || (is_of_one_context && !hpe.program().are_one())) return result;
  queued.done();
  hpe.queued().done(stream..., noted);
  return result;
}

template <auto Entry, class... Context>
CUresult CUDAAPI wait_for_context(Context... context) {
  CUcontext waited = nullptr;
  ((waited = context), ...);
  const auto wait = [&] {
    const waiting_driver_call here("cuCtxSynchronize", context...);
    return with_failures((real.*Entry)(context...));
  };
  return dividing(std::nullopt, division::perhaps_idle, wait_and_record(true, wait),
                  {.what = order_kind::waited_for_context, .context = waited});
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI wait_for_stream(CUstream stream) {
  const CUstream waited = named(stream, Flavour);
  const auto wait = [&] {
    const waiting_driver_call here("cuStreamSynchronize", stream);
    return with_failures((real.*Entry)(stream));
  };
  return divided_by_wait(waited, wait_and_record(is_default(waited), wait, waited));
}
template <auto Entry, flavour Flavour>
CUresult CUDAAPI query_stream(CUstream stream) {
  const CUstream asked = named(stream, Flavour);
  return divided_by_wait(asked, (real.*Entry)(stream));
}

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
  const CUstream on = named(stream, Flavour);
  return dividing(on, division::mark, (real.*Entry)(event, stream, flags...),
                  {.what = order_kind::recorded, .stream = on, .event = event});
}
template <auto Entry, flavour Flavour>
CUresult CUDAAPI let_stream_wait(CUstream stream, CUevent event, unsigned flags) {
  tell_divided(named(stream, Flavour), division::before_wait);
  return ordered((real.*Entry)(stream, event, flags),
                 {.what = order_kind::stream_waits, .stream = named(stream, Flavour), .event = event});
}
template <auto Entry, flavour Flavour>
CUresult CUDAAPI let_stream_wait_outside(const CUexternalSemaphore* what,
                                         const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* how, unsigned count,
                                         CUstream stream) {
  tell_divided(named(stream, Flavour), division::before_wait);
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

}  // namespace

}  // namespace hpe::cuda_hooks
