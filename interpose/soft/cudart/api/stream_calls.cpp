// The CUDA runtime's functions for streams.

#include <cuda_runtime_api.h>

#include <algorithm>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/graph/graph_operations.h"
#include "interpose/soft/cudart/memory/pool_table.h"
#include "interpose/soft/cudart/stream/capture.h"
#include "interpose/soft/cudart/stream/stream_table.h"

using namespace hpe::cudart;

namespace {

constexpr int greatest_priority = -5;  // cudaDeviceGetStreamPriorityRange returns this value and least_priority
constexpr int least_priority = 0;

cudaError_t create_stream(const char* function, cudaStream_t* made, unsigned flags, int priority) {
  return api_call(function, [&] {
    require(made != nullptr && (flags & ~unsigned{cudaStreamNonBlocking}) == 0, cudaErrorInvalidValue);
    require(!in_host_function(), cudaErrorNotPermitted);
    context& cuda = process();
    *made =
        cuda.streams().create(cuda.current_device(), flags, std::clamp(priority, greatest_priority, least_priority));
  });
}

template <class Value>
cudaError_t tell(const char* function, cudaStream_t handle, Value* out, Value (*of)(const cudart_stream&)) {
  return api_call(function, [&] {
    require(out != nullptr, cudaErrorInvalidValue);
    *out = of(*process().find_stream(handle));
  });
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api_call(__func__, [&] {
    if (least != nullptr) *least = least_priority;
    if (greatest != nullptr) *greatest = greatest_priority;
  });
}

cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t* made) {
  return create_stream(__func__, made, cudaStreamDefault, 0);
}

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* made, unsigned flags) {
  return create_stream(__func__, made, flags, 0);
}

cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t* made, unsigned flags, int priority) {
  return create_stream(__func__, made, flags, priority);
}

cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t handle) {
  return api_call(__func__, [&] {
    require(!in_host_function(), cudaErrorNotPermitted);
    const auto open = process().find_stream(handle);
    if (const auto active = open->capturing()) active->lose(*open);
    require(process().streams().destroy(handle), cudaErrorInvalidResourceHandle);
  });
}

cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t handle) {
  return api_call(__func__, [&] {
    const auto where = process().find_stream(handle);
    require_not_capturing(*where);
    check(where->synchronize());
    process().pools().release_excess();
  });
}

cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t handle) {
  return api_call(__func__, [&] {
    const auto where = process().find_stream(handle);
    require_not_capturing(*where);
    return where->query();
  });
}

cudaError_t CUDARTAPI cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return tell<int>(__func__, handle, priority, [](const cudart_stream& it) { return it.priority(); });
}

cudaError_t CUDARTAPI cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return tell<unsigned>(__func__, handle, flags, [](const cudart_stream& it) { return it.flags(); });
}

cudaError_t CUDARTAPI cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  return tell<unsigned long long>(__func__, handle, id,
                                  [](const cudart_stream& it) -> unsigned long long { return it.id(); });
}

cudaError_t CUDARTAPI cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return tell<int>(__func__, handle, device, [](const cudart_stream& it) { return it.device(); });
}

cudaError_t CUDARTAPI cudaStreamGetAttribute(cudaStream_t handle, cudaStreamAttrID attribute,
                                             cudaStreamAttrValue* value) {
  return api_call(__func__, [&] {
    const auto where = process().find_stream(handle);
    require(value != nullptr && where->attributes().get(attribute, *value), cudaErrorInvalidValue);
    if (attribute == cudaLaunchAttributePriority) value->priority = where->priority();
  });
}

cudaError_t CUDARTAPI cudaStreamSetAttribute(cudaStream_t handle, cudaStreamAttrID attribute,
                                             const cudaStreamAttrValue* value) {
  return api_call(__func__, [&] {
    const auto where = process().find_stream(handle);
    require(value != nullptr && attribute != cudaLaunchAttributePriority, cudaErrorInvalidValue);
    require(where->attributes().set(attribute, *value), cudaErrorInvalidValue);
  });
}

cudaError_t CUDARTAPI cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return api_call(
      __func__, [&] { process().find_stream(to)->attributes().copy_from(process().find_stream(from)->attributes()); });
}

cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return api_call(__func__, [&] {
    cudaHostNodeParams parameters{};
    parameters.fn = function;
    parameters.userData = data;
    check(submit(*process().find_stream(handle), std::make_shared<host_operation>(parameters)));
  });
}

cudaError_t CUDARTAPI cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void* data,
                                            unsigned flags) {
  return api_call(__func__, [&] {
    require(callback != nullptr && flags == 0, cudaErrorInvalidValue);
    const auto where = process().find_stream(handle);
    require_not_capturing(*where);
    check(where->enqueue_always([=](cudaError_t status) {
      const host_function_scope scope;
      callback(handle, status, data);
    }));
  });
}

/// Managed memory is always coherent on soft devices, so an attachment has no effect: this function queues an empty
/// task.
cudaError_t CUDARTAPI cudaStreamAttachMemAsync(cudaStream_t handle, void* address, size_t /*length*/, unsigned flags) {
  return api_call(__func__, [&] {
    require(address != nullptr, cudaErrorInvalidValue);
    require(flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle,
            cudaErrorInvalidValue);
    const auto where = process().find_stream(handle);
    require_not_capturing(*where);
    check(where->enqueue([] { return cudaSuccess; }));
  });
}
}
