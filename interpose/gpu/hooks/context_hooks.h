#pragma once

/// The hooks for entries that create, retain and end contexts. Only hook_table.cpp includes this file.

#include "interpose/gpu/hooks/memory_hooks.h"
#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/hooks/real_entries.h"
#include "interpose/gpu/interposer.h"

namespace hpe::cuda_hooks {

namespace {

template <auto Entry>
CUresult CUDAAPI retain_context(CUcontext* context, CUdevice device) {
  interposer* const hpe = memory_kinds::any() ? interposer::instance() : interposer::started();
  const CUresult result = (real.*Entry)(context, device);
  if (hpe == nullptr || result != CUDA_SUCCESS) return result;
  hpe->program().retained(*context);
  memory_kinds::each([&](memory_kind& kind) { kind.has_context(device); });
  return result;
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
