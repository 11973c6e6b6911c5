#pragma once

/// The hooks for entries that create, retain and end contexts. Only hook_table.cpp includes this file.

#include "interpose/gpu/hooks/memory_hooks.h"
#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/hooks/real_entries.h"
#include "interpose/gpu/interposer.h"

namespace hpe::cuda_hooks {

namespace {

// Kinds of memory need a record of all contexts, including contexts that the program creates before the primary one.
inline interposer* to_record_context() { return memory_kinds::any() ? interposer::instance() : interposer::started(); }

template <auto Entry>
CUresult CUDAAPI retain_context(CUcontext* context, CUdevice device) {
  interposer* const hpe = to_record_context();
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
        if (interposer* const hpe = to_record_context()) hpe->program().add(*context);
      },
      [&] { (real.cuCtxDestroy_v2)(*context); });
  return result;
}

template <auto Entry>
CUresult CUDAAPI make_green(CUgreenCtx* made, CUdevResourceDesc resources, CUdevice device, unsigned flags) {
  const CUresult result = (real.*Entry)(made, resources, device, flags);
  if (result != CUDA_SUCCESS) return result;
  or_undo(
      [&] {
        if (interposer* const hpe = to_record_context()) hpe->program().add_green(*made);
      },
      [&] { (real.cuGreenCtxDestroy)(*made); });
  return result;
}

// To be called before a call that may free the memory of a context or pool. `ended`: the context that ends; null if no
// context ends, or if hpe does not know the context.
inline void prepare_end(CUcontext ended) {
  memory_kinds::each([&](memory_kind& kind) { kind.ends(ended); });
  if (interposer* const hpe = interposer::started()) hpe->forget_contexts();
}

// To be called before a call that may destroy a context, with its captures and its code.
inline void prepare_end_of_context(CUcontext ended) {
  prepare_end(ended);
  if (interposer* const hpe = interposer::started()) hpe->forget_captures(ended);
  parameter_sizes::of_process().forget();  // as unload() does
}

// The code of a context ends with the context, and new kernels may get the handles of its kernels.
inline CUresult with_code_ended(CUresult result) {
  if (result == CUDA_SUCCESS) tell_code({code_step::unloaded, nullptr, nullptr, nullptr});
  return result;
}

template <auto Entry>
CUresult CUDAAPI end_green(CUgreenCtx green) {
  CUcontext context = nullptr;
  interposer* const hpe = interposer::started();
  if (hpe != nullptr && hpe->driver().cuCtxFromGreenCtx != nullptr &&
      hpe->driver().cuCtxFromGreenCtx(&context, green) != CUDA_SUCCESS)
    context = nullptr;
  prepare_end_of_context(context);
  if (hpe != nullptr) hpe->program().remove_green(green);
  return with_code_ended((real.*Entry)(green));
}

template <auto Entry>
CUresult CUDAAPI end_context(CUcontext context) {
  prepare_end_of_context(context);
  if (interposer* const hpe = interposer::started()) hpe->program().remove(context);
  return with_code_ended((real.*Entry)(context));
}

// The context ends only with its last user.
template <auto Entry>
CUresult CUDAAPI release_context(CUdevice device) {
  prepare_end(nullptr);
  parameter_sizes::of_process().forget();  // as unload() does
  interposer* const hpe = interposer::started();
  CUcontext const primary = hpe != nullptr ? hpe->program().primary_of(device) : nullptr;
  const CUresult result = (real.*Entry)(device);
  if (result == CUDA_SUCCESS && primary != nullptr && hpe->program().primary_of(device) == nullptr)
    hpe->forget_captures(primary);
  return result;
}

template <auto Entry>
CUresult CUDAAPI end_primary_context(CUdevice device) {
  prepare_end(nullptr);
  parameter_sizes::of_process().forget();  // as unload() does
  if (interposer* const hpe = interposer::started())
    if (CUcontext const primary = hpe->program().primary_of(device)) hpe->forget_captures(primary);
  return with_code_ended((real.*Entry)(device));
}

template <auto Entry>
CUresult CUDAAPI end_pool(CUmemoryPool pool) {
  prepare_end(nullptr);
  return (real.*Entry)(pool);
}

template <auto Entry>
CUresult CUDAAPI reset_context(CUdevice device) {
  if (const auto elsewhere = memory_kinds::first([&](memory_kind& kind) { return kind.reset(device); }))
    return *elsewhere;
  return end_primary_context<Entry>(device);
}

}  // namespace

}  // namespace hpe::cuda_hooks
