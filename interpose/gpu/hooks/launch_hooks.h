#pragma once

/// The hooks for launches. Only hook_table.cpp includes this file.

#include <functional>

#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/hooks/real_entries.h"
#include "interpose/gpu/interposer.h"
#include "interpose/gpu/spread/spreading.h"
#include "interpose/gpu/work/default_stream.h"
#include "interpose/gpu/work/enqueue_guard.h"
#include "runtime/trace/measured.h"
#include "runtime/trace/status_page.h"

namespace hpe::cuda_hooks {

namespace {

inline constexpr const char* launch_is_cooperative = "its launch is cooperative, so its blocks may wait for each other";
inline constexpr const char* launch_overlaps_others =
    "its launch has programmatic dependencies: it may begin before the previous launch has ended";

template <auto Entry, class... Arguments>
[[gnu::noinline, gnu::cold]] CUresult launch_watched(const program_launch& what, Arguments... arguments) {
  const trace::recorded here(trace::category::call, "launch of a kernel");
  const auto by_driver = [=] { return (real.*Entry)(arguments...); };
  const function_ref<CUresult()> alone(by_driver);
  const auto queue = [&](const box_part&) {
    const enqueue_guard work(what);
    if (work.failed()) return work.result();
    return alone();
  };
  counters::add(trace::status_page::own().count.launches, 1);
  const auto describe = [&]() -> device_call {
    return {.what = device_call::family::launch, .stream = what.stream, .launch = &what, .alone = &alone};
  };
  const auto elsewhere = memory_kinds::first([&](memory_kind& kind) { return kind.run(describe(), queue); });
  return observed(elsewhere ? *elsewhere : queue({}), describe);
}

// hpe need not examine most launches. For these launches, the hook costs only one load and the stores of
// queuing_threads, and the arguments stay in registers. describe() returns the description of the launch for the
// registered kinds of memory and for the trace. launch_of calls describe() only if call_watch::any() is true.
template <auto Entry, class Describe, class... Arguments>
[[gnu::always_inline]] inline CUresult launch_of(CUstream stream, const Describe& describe, Arguments... arguments) {
  {
    const queuing_threads::visit here(stream);
    if (!call_watch::any()) [[likely]] {
      counters::add(trace::status_page::own().count.launches, 1);
      return (real.*Entry)(arguments...);
    }
  }
  return launch_watched<Entry>(describe(), arguments...);
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
          return "its launch asks for clusters, whose blocks share memory of one device";
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

// The hook for cuLaunchKernel, and for cuLaunchCooperativeKernel, which has no argument `extra`.
template <auto Entry, flavour Flavour, class... Extra>
CUresult CUDAAPI launch(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void** parameters, Extra... extra) {
  const auto describe = [&]() -> program_launch {
    return {{function, parameters, extra...},
            {gx, gy, gz},
            {bx, by, bz},
            shared,
            named(stream, Flavour),
            sizeof...(extra) == 0 ? launch_is_cooperative : nullptr};
  };
  return launch_of<Entry>(named(stream, Flavour), describe, function, gx, gy, gz, bx, by, bz, shared, stream,
                          parameters, extra...);
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI launch_extended(const CUlaunchConfig* configuration, CUfunction function, void** parameters,
                                 void** extra) {
  // Without a configuration, hpe describes an empty launch; the driver refuses the call.
  static constexpr CUlaunchConfig none{};
  const CUlaunchConfig& c = configuration != nullptr ? *configuration : none;
  const auto describe = [&]() -> program_launch {
    return {{function, parameters, extra},
            {c.gridDimX, c.gridDimY, c.gridDimZ},
            {c.blockDimX, c.blockDimY, c.blockDimZ},
            c.sharedMemBytes,
            named(c.hStream, Flavour),
            configuration != nullptr ? obstacle_of(c) : "its launch has no configuration"};
  };
  return launch_of<Entry>(named(c.hStream, Flavour), describe, configuration, function, parameters, extra);
}

}  // namespace

}  // namespace hpe::cuda_hooks
