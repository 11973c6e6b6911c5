#include "interpose/cudart/memory/ipc.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "interpose/cudart/device/context.h"
#include "interpose/cudart/device/errors.h"
#include "interpose/cudart/stream/event.h"

namespace hpe::cudart {

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(hpeExport));

cudaIpcMemHandle_t ipc_table::export_memory(const void* address) {
  const auto found = memory_.find(address);
  require(found.has_value() && found->kind == memory_kind::device, cudaErrorInvalidValue);
  const std::scoped_lock lock(mutex_);
  const auto [place, is_new] = exports_.try_emplace(found->base);
  if (is_new) {
    if (const hpeStatus status = ::hpeExportBegin(&place->second, found->base, found->size); status != HPE_SUCCESS) {
      exports_.erase(place);
      check(status);
    }
    exports_any_ = true;
  }
  cudaIpcMemHandle_t result{};
  std::memcpy(&result, &place->second, sizeof result);
  return result;
}

void* ipc_table::open(const cudaIpcMemHandle_t& handle, int device) {
  hpeExport wanted{};
  std::memcpy(&wanted, &handle, sizeof wanted);
  const std::scoped_lock lock(mutex_);
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
  memory_.add({.base = base, .size = info.size, .kind = memory_kind::imported, .device = device});
  opened_[base] = {wanted, 1};
  return base;
}

void ipc_table::close(void* base) {
  const std::scoped_lock lock(mutex_);
  const auto found = opened_.find(base);
  require(found != opened_.end(), cudaErrorInvalidValue);
  if (--found->second.times > 0) return;
  opened_.erase(found);
  if (memory_.remove(base)) check(::hpeFree(base));
}

void ipc_table::forget(const void* base) {
  if (!exports_any_) return;
  const std::scoped_lock lock(mutex_);
  const auto found = exports_.find(base);
  if (found == exports_.end()) return;
  ::hpeExportEnd(&found->second);
  exports_.erase(found);
}

void ipc_table::drop_closed() {
  const std::scoped_lock lock(mutex_);
  std::erase_if(opened_, [&](const auto& each) { return !memory_.find(each.first); });
}

void ipc_table::refresh(const void* address) {
  if (!exports_any_) return;
  const auto found = memory_.find(address);
  const std::scoped_lock lock(mutex_);
  if (!found || exports_.count(found->base) == 0) return;
  hpeExport again{};
  check(::hpeExportBegin(&again, found->base, found->size));  // makes the copy at its home the valid one
  check(::hpeExportEnd(&again));
}

}  // namespace hpe::cudart

using namespace hpe::cudart;

extern "C" {

cudaError_t CUDARTAPI cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  return api_call(__func__, [&] {
    require(handle != nullptr, cudaErrorInvalidValue);
    *handle = process().ipc().export_memory(address);
  });
}

cudaError_t CUDARTAPI cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle, unsigned flags) {
  return api_call(__func__, [&] {
    require(address != nullptr && flags == cudaIpcMemLazyEnablePeerAccess, cudaErrorInvalidValue);
    *address = process().ipc().open(handle, process().current_device());
  });
}

cudaError_t CUDARTAPI cudaIpcCloseMemHandle(void* address) {
  return api_call(__func__, [&] {
    process().finish_work();
    process().ipc().close(address);
  });
}

cudaError_t CUDARTAPI cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return api_call(__func__, [&] {
    require(handle != nullptr, cudaErrorInvalidValue);
    const auto what = process().events().find(event);
    require(what->shared() != nullptr, cudaErrorInvalidResourceHandle);
    *handle = what->shared()->handle();
  });
}

cudaError_t CUDARTAPI cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return api_call(__func__, [&] {
    require(event != nullptr, cudaErrorInvalidValue);
    context& cuda = process();
    *event = cuda.events().create(cuda.current_device(), cudaEventInterprocess | cudaEventDisableTiming,
                                  shared_event::open(handle));
  });
}
}
