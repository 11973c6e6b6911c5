#include "interpose/soft/cudart/graph/graph_memory_table.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "hpe/announce.h"
#include "hpe/hpe.h"
#include "interpose/soft/cudart/api/graph/graph_calls.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/graph/graph_operations.h"
#include "interpose/soft/cudart/spread/soft_spreading.h"

namespace hpe::cudart {

graph_allocation::~graph_allocation() { table_.release(*this); }

std::shared_ptr<graph_allocation> graph_memory_table::allocate(std::size_t bytes, int device, unsigned access) {
  void* base = nullptr;
  check(allocate_device_memory(&base, bytes, device));
  memory_.add({.base = base, .size = bytes, .kind = allocation_kind::pool, .device = device, .flags = access});
  auto made = std::make_shared<graph_allocation>(*this, base, bytes, device);
  const lock_guard lock(mutex_);
  known_[base] = made;
  amount& total = amounts_[device];
  total.now += bytes;
  total.most = std::max(total.most, total.now);
  return made;
}

void graph_memory_table::release(const graph_allocation& gone) {
  {
    const lock_guard lock(mutex_);
    known_.erase(gone.base());
    amounts_[gone.device()].now -= gone.size();
  }
  // If remove() finds no allocation, cudaDeviceReset has freed the memory.
  if (memory_.remove(gone.base())) ::hpeFreeFinished(gone.base());
}

std::shared_ptr<graph_allocation> graph_memory_table::find(const void* base) const {
  const lock_guard lock(mutex_);
  const auto found = known_.find(base);
  return found == known_.end() ? nullptr : found->second.lock();
}

std::uint64_t graph_memory_table::bytes(int device) const {
  const lock_guard lock(mutex_);
  const auto found = amounts_.find(device);
  return found == amounts_.end() ? 0 : found->second.now;
}

std::uint64_t graph_memory_table::most_bytes(int device) const {
  const lock_guard lock(mutex_);
  const auto found = amounts_.find(device);
  return found == amounts_.end() ? 0 : found->second.most;
}

void graph_memory_table::reset_most(int device) {
  const lock_guard lock(mutex_);
  amount& total = amounts_[device];
  total.most = total.now;
}

cudaError_t alloc_operation::prepare(int device, stream_task& out) const {
  return marker_operation(type()).prepare(device, out);
}

cudaError_t free_operation::prepare(int device, stream_task& out) const {
  return marker_operation(type()).prepare(device, out);
}

std::shared_ptr<const stream_operation> make_alloc(cudaMemAllocNodeParams& parameters) {
  require(parameters.bytesize != 0 && parameters.poolProps.allocType == cudaMemAllocationTypePinned &&
              parameters.poolProps.handleTypes == cudaMemHandleTypeNone &&
              parameters.poolProps.location.type == cudaMemLocationTypeDevice,
          cudaErrorInvalidValue);
  const int device = parameters.poolProps.location.id;
  process().devices().require_device(device);
  unsigned access = 0;
  for (std::size_t i = 0; i < parameters.accessDescCount; ++i) {
    const cudaMemAccessDesc& each = parameters.accessDescs[i];
    process().devices().require_device(each.location.id);
    if (each.flags == cudaMemAccessFlagsProtReadWrite) access |= 1U << each.location.id;
  }
  auto memory = process().graph_memory().allocate(parameters.bytesize, device, access);
  parameters.dptr = memory->base();
  return std::make_shared<alloc_operation>(parameters, std::move(memory));
}

std::shared_ptr<const stream_operation> make_free(void* address) {
  auto memory = process().graph_memory().find(address);
  require(memory != nullptr, cudaErrorInvalidValue);
  return std::make_shared<free_operation>(std::move(memory));
}

}  // namespace hpe::cudart

using namespace hpe::cudart;

namespace {

cudaError_t add(const char* function, cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before,
                size_t count, const auto& make) {
  return api_call(function, [&] {
    require(made != nullptr, cudaErrorInvalidValue);
    graph& into = process().graphs().find(handle);
    const auto dependencies = nodes_of(before, count);
    *made = handle_of(into.add(make(), dependencies, process().current_device()));
  });
}

template <class Operation>
const Operation& operation_of(cudaGraphNode_t handle) {
  const auto* const what = dynamic_cast<const Operation*>(process().graphs().find(handle).what().get());
  require(what != nullptr, cudaErrorInvalidValue);
  return *what;
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaGraphAddMemAllocNode(cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before,
                                               size_t count, cudaMemAllocNodeParams* parameters) {
  return add(__func__, made, handle, before, count, [&] {
    require(parameters != nullptr, cudaErrorInvalidValue);
    return make_alloc(*parameters);
  });
}

cudaError_t CUDARTAPI cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* out) {
  return api_call(__func__, [&] {
    require(out != nullptr, cudaErrorInvalidValue);
    *out = operation_of<alloc_operation>(node).parameters();
  });
}

cudaError_t CUDARTAPI cudaGraphAddMemFreeNode(cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before,
                                              size_t count, void* address) {
  return add(__func__, made, handle, before, count, [&] { return make_free(address); });
}

cudaError_t CUDARTAPI cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* out) {
  return api_call(__func__, [&] {
    require(out != nullptr, cudaErrorInvalidValue);
    *static_cast<void**>(out) = operation_of<free_operation>(node).address();
  });
}

/// Reports the memory of all existing allocation nodes as used and as reserved memory.
cudaError_t CUDARTAPI cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return api_call(__func__, [&] {
    process().devices().require_device(device);
    require(value != nullptr, cudaErrorInvalidValue);
    const bool current = attribute == cudaGraphMemAttrUsedMemCurrent || attribute == cudaGraphMemAttrReservedMemCurrent;
    require(current || attribute == cudaGraphMemAttrUsedMemHigh || attribute == cudaGraphMemAttrReservedMemHigh,
            cudaErrorInvalidValue);
    const graph_memory_table& table = process().graph_memory();
    *static_cast<std::uint64_t*>(value) = current ? table.bytes(device) : table.most_bytes(device);
  });
}

cudaError_t CUDARTAPI cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return api_call(__func__, [&] {
    process().devices().require_device(device);
    require(attribute == cudaGraphMemAttrUsedMemHigh || attribute == cudaGraphMemAttrReservedMemHigh,
            cudaErrorInvalidValue);
    require(value != nullptr && *static_cast<const std::uint64_t*>(value) == 0, cudaErrorInvalidValue);
    process().graph_memory().reset_most(device);
  });
}

cudaError_t CUDARTAPI cudaDeviceGraphMemTrim(int device) {
  return api_call(__func__, [&] { process().devices().require_device(device); });
}
}
