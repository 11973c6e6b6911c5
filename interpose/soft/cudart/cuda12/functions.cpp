// The functions of the CUDA 12 runtime whose signature CUDA 13 changed. They call CUDA 13's functions, under versioned
// names (cudaMemAdvise_v2) if CUDA 12 has the new signature under such a name, and otherwise under names that are not
// exported (hpe_cuda13_...). generate.py reads these names from the object file and generates the functions that jump
// to CUDA 13's functions. At the end of the file are the functions that CUDA 13 removed, and the functions of which
// CUDA 13 changed only the name.

#include <driver_types.h>
#include <surface_types.h>
#include <texture_types.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "interpose/soft/cudart/cuda12/structures.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/device/thread_state.h"
#include "interpose/soft/cudart/module/kernel_launches.h"

using namespace hpe::cudart;
using namespace hpe::cudart::cuda12;

namespace {

constexpr int version = 12090;

cudaMemLocation location_of(int device) {
  cudaMemLocation result{};
  result.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  result.id = device == cudaCpuDeviceId ? 0 : device;
  return result;
}

}  // namespace

extern "C" {

// Functions of CUDA 13.
cudaError_t hpe_cuda13_cudaChooseDevice(int*, const cudaDeviceProp*);
cudaError_t hpe_cuda13_cudaCreateSurfaceObject(cudaSurfaceObject_t*, const cudaResourceDesc*);
cudaError_t hpe_cuda13_cudaCreateTextureObject(cudaTextureObject_t*, const cudaResourceDesc*, const cudaTextureDesc*,
                                               const cudaResourceViewDesc*);
cudaError_t hpe_cuda13_cudaGetDeviceProperties(cudaDeviceProp*, int);
cudaError_t hpe_cuda13_cudaGetSurfaceObjectResourceDesc(cudaResourceDesc*, cudaSurfaceObject_t);
cudaError_t hpe_cuda13_cudaGetTextureObjectResourceDesc(cudaResourceDesc*, cudaTextureObject_t);
cudaError_t hpe_cuda13_cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc*, cudaTextureObject_t);
cudaError_t hpe_cuda13_cudaMemcpy3DBatchAsync(size_t, cudaMemcpy3DBatchOp*, unsigned long long, cudaStream_t);
cudaError_t hpe_cuda13_cudaMemcpyBatchAsync(void* const*, const void* const*, const size_t*, size_t,
                                            cudaMemcpyAttributes*, size_t*, size_t, cudaStream_t);
cudaError_t hpe_cuda13_cudaPointerGetAttributes(cudaPointerAttributes*, const void*);
cudaError_t hpe_cuda13_cudaRuntimeGetVersion(int*);
cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*,
                                        const cudaGraphEdgeData*, size_t);
cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*, size_t,
                                cudaGraphNodeParams*);
cudaError_t cudaGraphGetEdges_v2(cudaGraph_t, cudaGraphNode_t*, cudaGraphNode_t*, cudaGraphEdgeData*, size_t*);
cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*, size_t*);
cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*, size_t*);
cudaError_t cudaGraphRemoveDependencies_v2(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*,
                                           const cudaGraphEdgeData*, size_t);
cudaError_t cudaMemAdvise_v2(const void*, size_t, cudaMemoryAdvise, cudaMemLocation);
cudaError_t cudaMemPrefetchAsync_v2(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t);
cudaError_t cudaSignalExternalSemaphoresAsync_v2();
cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
                                        const cudaGraphNode_t**, const cudaGraphEdgeData**, size_t*);
cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t, cudaGraphNode_t*, const cudaGraphEdgeData*, size_t,
                                                   unsigned);
cudaError_t cudaWaitExternalSemaphoresAsync_v2();

// Functions with the same signature in CUDA 12 and CUDA 13.
cudaError_t cudaDeviceGetAttribute(int*, cudaDeviceAttr, int);
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache*);
cudaError_t cudaDeviceGetLimit(size_t*, cudaLimit);
cudaError_t cudaDeviceReset();
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache);
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t);
cudaError_t cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t hpe_cudart_absent(const char*) noexcept;

// Functions with parameters whose structures CUDA 13 changed.

cudaError_t cudaRuntimeGetVersion(int* result) {
  const cudaError_t error = hpe_cuda13_cudaRuntimeGetVersion(result);
  if (error == cudaSuccess) *result = version;
  return error;
}

cudaError_t cudaPointerGetAttributes(pointer_attributes* result, const void* pointer) {
  cudaPointerAttributes wide{};
  const cudaError_t error = hpe_cuda13_cudaPointerGetAttributes(result != nullptr ? &wide : nullptr, pointer);
  if (error == cudaSuccess) *result = {wide.type, wide.device, wide.devicePointer, wide.hostPointer};
  return error;
}

cudaError_t cudaGetDeviceProperties_v2(device_properties* result, int device) {
  cudaDeviceProp properties{};
  const cudaError_t error = hpe_cuda13_cudaGetDeviceProperties(result != nullptr ? &properties : nullptr, device);
  if (error != cudaSuccess) return error;
  *result = device_properties(properties);
  const auto set = [&](device_properties::removed member, cudaDeviceAttr attribute) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess) result->set(member, value);
  };
  set(device_properties::clock_rate, cudaDevAttrClockRate);
  set(device_properties::device_overlap, cudaDevAttrGpuOverlap);
  set(device_properties::kernel_exec_timeout_enabled, cudaDevAttrKernelExecTimeout);
  set(device_properties::compute_mode, cudaDevAttrComputeMode);
  set(device_properties::max_texture_1d_linear, cudaDevAttrMaxTexture1DLinearWidth);
  set(device_properties::memory_clock_rate, cudaDevAttrMemoryClockRate);
  set(device_properties::single_to_double_precision_perf_ratio, cudaDevAttrSingleToDoublePrecisionPerfRatio);
  return cudaSuccess;
}

/// CUDA 11's version of this function. CUDA 11's structure is the beginning of CUDA 12's structure.
cudaError_t cudaGetDeviceProperties(void* result, int device) {
  device_properties wide;
  const cudaError_t error = cudaGetDeviceProperties_v2(result != nullptr ? &wide : nullptr, device);
  if (error == cudaSuccess) std::memcpy(result, &wide, device_properties::bytes_of_cuda11);
  return error;
}

cudaError_t cudaChooseDevice(int* device, const device_properties* wish) {
  if (wish == nullptr) return hpe_cuda13_cudaChooseDevice(device, nullptr);
  const cudaDeviceProp properties = wish->as_cuda13();
  return hpe_cuda13_cudaChooseDevice(device, &properties);
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* made, const resource_description* resource,
                                    const cudaTextureDesc* texture, const view_description* view) {
  const auto wide = resource != nullptr ? widened<cudaResourceDesc>(*resource) : cudaResourceDesc{};
  const auto wide_view = view != nullptr ? widened<cudaResourceViewDesc>(*view) : cudaResourceViewDesc{};
  return hpe_cuda13_cudaCreateTextureObject(made, resource != nullptr ? &wide : nullptr, texture,
                                            view != nullptr ? &wide_view : nullptr);
}

cudaError_t cudaGetTextureObjectResourceDesc(resource_description* result, cudaTextureObject_t texture) {
  cudaResourceDesc wide{};
  const cudaError_t error = hpe_cuda13_cudaGetTextureObjectResourceDesc(result != nullptr ? &wide : nullptr, texture);
  if (error == cudaSuccess) narrow(wide, *result);
  return error;
}

cudaError_t cudaGetTextureObjectResourceViewDesc(view_description* result, cudaTextureObject_t texture) {
  cudaResourceViewDesc wide{};
  const cudaError_t error =
      hpe_cuda13_cudaGetTextureObjectResourceViewDesc(result != nullptr ? &wide : nullptr, texture);
  if (error == cudaSuccess) narrow(wide, *result);
  return error;
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* made, const resource_description* resource) {
  const auto wide = resource != nullptr ? widened<cudaResourceDesc>(*resource) : cudaResourceDesc{};
  return hpe_cuda13_cudaCreateSurfaceObject(made, resource != nullptr ? &wide : nullptr);
}

cudaError_t cudaGetSurfaceObjectResourceDesc(resource_description* result, cudaSurfaceObject_t surface) {
  cudaResourceDesc wide{};
  const cudaError_t error = hpe_cuda13_cudaGetSurfaceObjectResourceDesc(result != nullptr ? &wide : nullptr, surface);
  if (error == cudaSuccess) narrow(wide, *result);
  return error;
}

// Functions whose parameter is the number of a device, where CUDA 13 has a location.

cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice, int device) {
  return cudaMemAdvise_v2(pointer, bytes, advice, location_of(device));
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device, cudaStream_t stream) {
  return cudaMemPrefetchAsync_v2(pointer, bytes, location_of(device), 0, stream);
}

cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, size_t bytes, int device, cudaStream_t stream) {
  const own_default_stream scope;
  return cudaMemPrefetchAsync(pointer, bytes, device, stream);
}

// Functions that return the index of the copy that failed. CUDA 13's functions do not return this index, so these
// functions return SIZE_MAX, which CUDA 12 defines for failures that do not concern a single copy.

cudaError_t cudaMemcpyBatchAsync(void** to, void** from, size_t* sizes, size_t count, cudaMemcpyAttributes* attributes,
                                 size_t* firsts, size_t attribute_count, size_t* failed, cudaStream_t stream) {
  const cudaError_t error =
      hpe_cuda13_cudaMemcpyBatchAsync(to, from, sizes, count, attributes, firsts, attribute_count, stream);
  if (error != cudaSuccess && failed != nullptr) *failed = SIZE_MAX;
  return error;
}

cudaError_t cudaMemcpyBatchAsync_ptsz(void** to, void** from, size_t* sizes, size_t count,
                                      cudaMemcpyAttributes* attributes, size_t* firsts, size_t attribute_count,
                                      size_t* failed, cudaStream_t stream) {
  const own_default_stream scope;
  return cudaMemcpyBatchAsync(to, from, sizes, count, attributes, firsts, attribute_count, failed, stream);
}

cudaError_t cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* copies, size_t* failed, unsigned long long flags,
                                   cudaStream_t stream) {
  const cudaError_t error = hpe_cuda13_cudaMemcpy3DBatchAsync(count, copies, flags, stream);
  if (error != cudaSuccess && failed != nullptr) *failed = SIZE_MAX;
  return error;
}

cudaError_t cudaMemcpy3DBatchAsync_ptsz(size_t count, cudaMemcpy3DBatchOp* copies, size_t* failed,
                                        unsigned long long flags, cudaStream_t stream) {
  const own_default_stream scope;
  return cudaMemcpy3DBatchAsync(count, copies, failed, flags, stream);
}

// Graph functions without edge data.

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        size_t count) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* made, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                             cudaGraphNodeParams* parameters) {
  return cudaGraphAddNode_v2(made, graph, after, nullptr, count, parameters);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
  return cudaGraphGetEdges_v2(graph, from, to, nullptr, count);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
  return cudaGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
  return cudaGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                        cudaGraph_t* graph, const cudaGraphNode_t** after, size_t* count) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, after, nullptr, count);
}

cudaError_t cudaStreamGetCaptureInfo_v2_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                             unsigned long long* id, cudaGraph_t* graph, const cudaGraphNode_t** after,
                                             size_t* count) {
  const own_default_stream scope;
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, after, count);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                          unsigned long long* id) {
  const own_default_stream scope;
  return cudaStreamGetCaptureInfo(stream, status, id);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes, size_t count,
                                                unsigned flags) {
  return cudaStreamUpdateCaptureDependencies_v2(stream, nodes, nullptr, count, flags);
}

cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream, cudaGraphNode_t* nodes, size_t count,
                                                     unsigned flags) {
  const own_default_stream scope;
  return cudaStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}

// Functions that CUDA 13 does not have.

cudaError_t cudaLaunchCooperativeKernelMultiDevice(const launch_parameters* list, unsigned count, unsigned flags) {
  return api_call(__func__, [&] {
    require(list != nullptr, cudaErrorInvalidValue);
    std::vector<cudaStream_t> streams;
    for (unsigned i = 0; i < count; ++i) streams.push_back(list[i].stream);
    launch_on_devices(streams, flags, [&](std::size_t i) {
      const launch_parameters& it = list[i];
      check(cudaLaunchCooperativeKernel(it.function, it.grid, it.block, it.arguments, it.shared_bytes, it.stream));
    });
  });
}

// Functions that have another name in CUDA 13.

cudaError_t cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return cudaEventElapsedTime(milliseconds, from, to);
}

cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
cudaError_t cudaThreadGetLimit(size_t* value, cudaLimit limit) { return cudaDeviceGetLimit(value, limit); }
cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) { return cudaDeviceSetLimit(limit, value); }
cudaError_t cudaThreadGetCacheConfig(cudaFuncCache* config) { return cudaDeviceGetCacheConfig(config); }
cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) { return cudaDeviceSetCacheConfig(config); }
cudaError_t cudaSetDoubleForDevice(double*) { return cudaSuccess; }
cudaError_t cudaSetDoubleForHost(double*) { return cudaSuccess; }

// Soft devices do not support these functions: each call returns cudaErrorNotSupported.

cudaError_t cudaSignalExternalSemaphoresAsync() { return cudaSignalExternalSemaphoresAsync_v2(); }
cudaError_t cudaSignalExternalSemaphoresAsync_ptsz() { return cudaSignalExternalSemaphoresAsync_v2(); }
cudaError_t cudaWaitExternalSemaphoresAsync() { return cudaWaitExternalSemaphoresAsync_v2(); }
cudaError_t cudaWaitExternalSemaphoresAsync_ptsz() { return cudaWaitExternalSemaphoresAsync_v2(); }
}
