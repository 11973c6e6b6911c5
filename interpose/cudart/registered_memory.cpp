// The program's own memory, page-locked by cudaHostRegister. hpe's copies take any memory, so there is nothing to lock;
// kernels on soft devices, which are other processes, cannot reach it.

#include <cuda_runtime_api.h>

#include "interpose/cudart/context.h"

using namespace hpe::cudart;

extern "C" {

cudaError_t CUDARTAPI cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  return api_call("cudaHostRegister", [&] {
    constexpr unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly;
    require(pointer != nullptr && bytes > 0, cudaErrorInvalidValue);
    require((flags & ~known) == 0, cudaErrorNotSupported);
    memory_table& memory = process().memory();
    const auto* const last = static_cast<const char*>(pointer) + bytes - 1;
    require(!memory.find(pointer) && !memory.find(last), cudaErrorHostMemoryAlreadyRegistered);
    memory.add({.base = pointer,
                .size = bytes,
                .kind = memory_kind::registered,
                .device = process().current_device(),
                .flags = flags});
  });
}

cudaError_t CUDARTAPI cudaHostUnregister(void* pointer) {
  return api_call("cudaHostUnregister", [&] {
    const auto found = process().memory().find(pointer);
    require(found.has_value() && found->kind == memory_kind::registered, cudaErrorHostMemoryNotRegistered);
    require(found->base == pointer, cudaErrorInvalidValue);
    process().finish_work();
    process().memory().remove(pointer);
  });
}

/// Memory of cudaMallocHost is where kernels see it. Registered memory is nowhere that they see.
cudaError_t CUDARTAPI cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned flags) {
  return api_call("cudaHostGetDevicePointer", [&] {
    require(device_pointer != nullptr && flags == 0, cudaErrorInvalidValue);
    const auto found = process().memory().find(pointer);
    require(found.has_value() && !found->is_on_device(), cudaErrorInvalidValue);
    require(found->kind == memory_kind::host, cudaErrorNotSupported);
    *device_pointer = pointer;
  });
}
}
