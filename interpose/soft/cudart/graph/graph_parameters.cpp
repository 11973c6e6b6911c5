// Implements the functions of graph_calls.h that create the operations of graph nodes.

#include <cuda_runtime_api.h>

#include "interpose/soft/cudart/api/graph/graph_calls.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/graph/graph_memory_table.h"
#include "interpose/soft/cudart/graph/graph_operations.h"
#include "interpose/soft/cudart/module/kernel_launches.h"
#include "interpose/soft/cudart/module/module_table.h"
#include "interpose/soft/cudart/stream/event.h"
#include "interpose/soft/cudart/stream/operations.h"

namespace hpe::cudart {
namespace {

template <class Operation>
std::shared_ptr<const stream_operation> checked(std::shared_ptr<Operation> made) {
  stream_task unused;
  check(made->prepare(process().current_device(), unused));
  return made;
}

}  // namespace

std::shared_ptr<const stream_operation> make_operation(const cudaKernelNodeParams* parameters) {
  require(parameters != nullptr && parameters->func != nullptr, cudaErrorInvalidValue);
  auto made = std::make_shared<kernel_operation>();
  check(made->take(*parameters, process().current_device()));
  // The attributes are not known yet, so prepare() performs the checks that depend on them.
  check_shape(*process().modules().find_kernel(made->function), process().current_device(), made->grid, made->block,
              made->shared_bytes, false);
  return made;
}

std::shared_ptr<const stream_operation> with_attributes_of(const stream_operation& before,
                                                           std::shared_ptr<const stream_operation> made) {
  const auto* const old = dynamic_cast<const kernel_operation*>(&before);
  const auto* const what = dynamic_cast<const kernel_operation*>(made.get());
  if (old != nullptr && what != nullptr) return what->with(old->attributes);
  return made;
}

std::shared_ptr<const stream_operation> make_operation(const cudaMemcpy3DParms* parameters) {
  require(parameters != nullptr, cudaErrorInvalidValue);
  auto made = std::make_shared<copy_operation>();
  made->parameters = *parameters;
  return checked(std::move(made));
}

std::shared_ptr<const stream_operation> make_operation(const cudaMemsetParams* parameters) {
  require(parameters != nullptr, cudaErrorInvalidValue);
  auto made = std::make_shared<set_operation>();
  made->parameters = *parameters;
  return checked(std::move(made));
}

std::shared_ptr<const stream_operation> make_operation(const cudaHostNodeParams* parameters) {
  require(parameters != nullptr, cudaErrorInvalidValue);
  return checked(std::make_shared<host_operation>(*parameters));
}

std::unique_ptr<graph> clone_of(const graph& original) {
  if (original.has_conditions())
    throw failure(cudaErrorNotSupported, "a graph with conditional nodes cannot be cloned or be a child graph");
  return original.clone();
}

std::shared_ptr<const stream_operation> make_record(cudaEvent_t handle) {
  return std::make_shared<record_operation>(handle, process().events().find(handle));
}

std::shared_ptr<const stream_operation> make_wait(cudaEvent_t handle) {
  return std::make_shared<wait_operation>(handle, process().events().find(handle));
}

cudaMemcpy3DParms copy_of_bytes(void* to, const void* from, std::size_t count, cudaMemcpyKind kind) {
  cudaMemcpy3DParms result{};
  result.srcPtr = {const_cast<void*>(from), count, count, 1};
  result.dstPtr = {to, count, count, 1};
  result.extent = {count, 1, 1};
  result.kind = kind;
  return result;
}

void* address_in_symbol(const void* symbol, std::size_t offset, std::size_t count) {
  void* address = nullptr;
  std::size_t size = 0;
  check(cudaGetSymbolAddress(&address, symbol));
  check(cudaGetSymbolSize(&size, symbol));
  require(offset <= size && count <= size - offset, cudaErrorInvalidValue);
  return static_cast<char*>(address) + offset;
}

std::shared_ptr<const stream_operation> make_operation(cudaGraphNodeParams& parameters) {
  switch (parameters.type) {
    case cudaGraphNodeTypeKernel: {
      const cudaKernelNodeParamsV2& given = parameters.kernel;
      const cudaKernelNodeParams kernel{given.func,           given.gridDim,      given.blockDim,
                                        given.sharedMemBytes, given.kernelParams, given.extra};
      return make_operation(&kernel);
    }
    case cudaGraphNodeTypeMemcpy: return make_operation(&parameters.memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
      const cudaMemsetParamsV2& given = parameters.memset;
      const cudaMemsetParams set{given.dst, given.pitch, given.value, given.elementSize, given.width, given.height};
      return make_operation(&set);
    }
    case cudaGraphNodeTypeHost: {
      const cudaHostNodeParams host{parameters.host.fn, parameters.host.userData};
      return make_operation(&host);
    }
    case cudaGraphNodeTypeEmpty: return std::make_shared<marker_operation>(cudaGraphNodeTypeEmpty);
    case cudaGraphNodeTypeEventRecord: return make_record(parameters.eventRecord.event);
    case cudaGraphNodeTypeWaitEvent: return make_wait(parameters.eventWait.event);
    case cudaGraphNodeTypeMemAlloc: {
      cudaMemAllocNodeParamsV2& given = parameters.alloc;
      cudaMemAllocNodeParams memory{given.poolProps, given.accessDescs, given.accessDescCount, given.bytesize, nullptr};
      auto made = make_alloc(memory);
      given.dptr = memory.dptr;
      return made;
    }
    case cudaGraphNodeTypeMemFree: return make_free(parameters.free.dptr);
    default: throw failure(cudaErrorNotSupported);
  }
}

}  // namespace hpe::cudart
