// The CUDA runtime's functions for surface objects. A surface is the memory of an array; the instructions in kernels
// determine the format of each access.

#include <cuda_runtime_api.h>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/memory/texture_table.h"

using namespace hpe::cudart;

extern "C" {

cudaError_t CUDARTAPI cudaCreateSurfaceObject(cudaSurfaceObject_t* made, const cudaResourceDesc* resource) {
  return api_call(__func__, [&] {
    require(made != nullptr && resource != nullptr && resource->resType == cudaResourceTypeArray,
            cudaErrorInvalidValue);
    context& cuda = process();
    const auto array = cuda.arrays().find(resource->res.array.array);
    require((array->flags & cudaArraySurfaceLoadStore) != 0, cudaErrorInvalidValue);
    *made = cuda.surfaces().create({*resource, {}, std::nullopt, cuda.current_device()}, layout_of(*array));
  });
}

cudaError_t CUDARTAPI cudaDestroySurfaceObject(cudaSurfaceObject_t handle) {
  return api_call(__func__, [&] {
    if (handle != 0) process().surfaces().free(handle);
  });
}

cudaError_t CUDARTAPI cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* out, cudaSurfaceObject_t handle) {
  return api_call(__func__, [&] {
    require(out != nullptr, cudaErrorInvalidValue);
    *out = process().surfaces().find(handle)->resource;
  });
}
}
