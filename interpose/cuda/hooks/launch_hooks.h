#pragma once

/// The hooks of launches. Only hook_table.cpp includes this file.

#include <functional>

#include "interpose/cuda/hooks/oversubscribed_hooks.h"
#include "interpose/cuda/hooks/real_entries.h"
#include "interpose/cuda/hooks/spread_hooks.h"
#include "interpose/cuda/interposer.h"
#include "interpose/cuda/work/device_work.h"
#include "runtime/trace/measured.h"
#include "runtime/trace/status_page.h"

namespace hpe::cuda_hooks {

namespace {

template <auto Entry, class... Arguments>
[[gnu::noinline, gnu::cold]] CUresult launch_watched(CUstream stream, const kernel_launch& kernel,
                                                     Arguments... arguments) {
  const trace::recorded here(trace::category::call, "launch of a kernel");
  const device_work work(stream, kernel);
  if (work.failed()) return work.result();
  return (real.*Entry)(arguments...);
}

inline constexpr const char* launch_is_cooperative = "its launch is cooperative, so its blocks may wait for each other";
inline constexpr const char* launch_overlaps_others = "its launch may begin or be awaited before others have ended";

// Most launches do not concern hpe. For them this adds only the stores of queuing_threads, and the arguments stay in
// registers.
template <auto Entry, class... Arguments>
[[gnu::always_inline]] inline CUresult launch_in_memory(CUstream stream, const kernel_launch& kernel,
                                                        Arguments... arguments) {
  {
    const queuing_threads::visit here(stream);
    counters::add(trace::status_page::own().count.launches, 1);
    if (!device_work::is_told() && trace::recorder::active() == nullptr) [[likely]]
      return (real.*Entry)(arguments...);
  }
  return launch_watched<Entry>(stream, kernel, arguments...);
}

template <auto Entry, class... Arguments>
[[gnu::noinline, gnu::cold]] CUresult launch_larger(oversubscribed& all, CUstream stream, const kernel_launch& kernel,
                                                    Arguments... arguments) {
  return all.run(stream, use_of(all, kernel), [&] { return launch_in_memory<Entry>(stream, kernel, arguments...); });
}

template <auto Entry, class... Arguments>
[[gnu::always_inline]] inline CUresult launch_of(CUstream stream, const kernel_launch& kernel, Arguments... arguments) {
  if (oversubscribed* const all = oversubscribed::active()) [[unlikely]]
    return launch_larger<Entry>(*all, stream, kernel, arguments...);
  return launch_in_memory<Entry>(stream, kernel, arguments...);
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

}  // namespace

}  // namespace hpe::cuda_hooks
