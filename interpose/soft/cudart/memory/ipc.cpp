#include "interpose/soft/cudart/memory/ipc.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "hpe/announce.h"
#include "interpose/soft/cudart/check/checked_memory.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/stream/event.h"

namespace hpe::cudart {

hpeExport ipc_table::export_memory(const void* address, allocation_kind kind) {
  const auto found = memory_.find(address);
  require(found.has_value() && found->kind == kind, cudaErrorInvalidValue);
  const lock_guard lock(mutex_);
  const auto [place, is_new] = exports_.try_emplace(found->base);
  if (is_new) {
    if (const hpeStatus status = ::hpeExportBegin(&place->second, found->base, found->size); status != HPE_SUCCESS) {
      exports_.erase(place);
      check(status);
    }
    exports_any_ = true;
    tell_shared(*found, place->second);
  }
  return place->second;
}

void* ipc_table::open(const hpeExport& wanted, int device, allocation_kind kind) {
  const lock_guard lock(mutex_);
  for (auto& [base, each] : opened_) {
    if (std::memcmp(&each.handle, &wanted, sizeof wanted) != 0) continue;
    ++each.times;
    return base;
  }
  void* base = nullptr;
  const hpeStatus status = ::hpeExportOpen(&base, &wanted);
  require(status != HPE_ERROR_NOT_FOUND && status != HPE_ERROR_NOT_SUPPORTED, cudaErrorInvalidResourceHandle);
  check(status);
  hpePointerInfo info{};
  check(::hpeGetPointerInfo(base, &info));
  const cudart_allocation made{.base = base, .size = info.size, .kind = allocation_kind::imported, .device = device};
  memory_.add(made);
  tell_shared(made, wanted);
  opened_[base] = {wanted, kind, 1};
  return base;
}

bool ipc_table::has_opened(void* base, allocation_kind kind) {
  const lock_guard lock(mutex_);
  const auto found = opened_.find(base);
  return found != opened_.end() && found->second.kind == kind;
}

bool ipc_table::close(void* base, allocation_kind kind) {
  const lock_guard lock(mutex_);
  const auto found = opened_.find(base);
  if (found == opened_.end() || found->second.kind != kind) return false;
  if (--found->second.times > 0) return true;
  opened_.erase(found);
  if (memory_.remove(base)) check(::hpeFreeFinished(base));
  return true;
}

void ipc_table::forget(const void* base) {
  if (!exports_any_) return;
  const lock_guard lock(mutex_);
  const auto found = exports_.find(base);
  if (found == exports_.end()) return;
  ::hpeExportEnd(&found->second);
  exports_.erase(found);
}

void ipc_table::drop_closed() {
  const lock_guard lock(mutex_);
  std::erase_if(opened_, [&](const auto& each) { return !memory_.find(each.first); });
}

void ipc_table::refresh(const void* address) {
  if (!exports_any_) return;
  const auto found = memory_.find(address);
  const lock_guard lock(mutex_);
  if (!found || exports_.count(found->base) == 0) return;
  hpeExport again{};
  // Makes the data in the memory of the allocation's device the valid data.
  check(::hpeExportBegin(&again, found->base, found->size));
  check(::hpeExportEnd(&again));
}

}  // namespace hpe::cudart

using namespace hpe::cudart;

extern "C" {

cudaError_t CUDARTAPI cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  return api_call(__func__, [&] {
    require(handle != nullptr, cudaErrorInvalidValue);
    static_assert(sizeof *handle == sizeof(hpeExport));
    const hpeExport made = process().ipc().export_memory(address, allocation_kind::device);
    std::memcpy(handle, &made, sizeof made);
  });
}

cudaError_t CUDARTAPI cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle, unsigned flags) {
  return api_call(__func__, [&] {
    require(address != nullptr && flags == cudaIpcMemLazyEnablePeerAccess, cudaErrorInvalidValue);
    hpeExport wanted{};
    std::memcpy(&wanted, &handle, sizeof wanted);
    *address = process().ipc().open(wanted, process().current_device(), allocation_kind::device);
  });
}

cudaError_t CUDARTAPI cudaIpcCloseMemHandle(void* address) {
  return api_call(__func__, [&] {
    process().finish_work();
    require(process().ipc().close(address, allocation_kind::device), cudaErrorInvalidValue);
  });
}

cudaError_t CUDARTAPI cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return api_call(__func__, [&] {
    require(handle != nullptr, cudaErrorInvalidValue);
    const auto what = process().events().find(event);
    require(what->shared() != nullptr, cudaErrorInvalidResourceHandle);
    *handle = what->shared()->handle();
    tell_unknown_order("the processes share events");
  });
}

cudaError_t CUDARTAPI cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return api_call(__func__, [&] {
    require(event != nullptr, cudaErrorInvalidValue);
    context& cuda = process();
    *event = cuda.events().create(cuda.current_device(), cudaEventInterprocess | cudaEventDisableTiming,
                                  shared_event::open(handle));
    tell_unknown_order("the processes share events");
  });
}
}
