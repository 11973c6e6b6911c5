// The functions that query and set properties of kernels: attributes, parameters, occupancy and handles.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/module/cluster.h"
#include "interpose/soft/cudart/module/kernel_launches.h"
#include "interpose/soft/cudart/module/module_table.h"

using namespace hpe::cudart;

namespace {

std::shared_ptr<kernel> find(const void* function) { return process().modules().find_kernel(function); }

// The reported number of registers per thread. Kernels on soft devices have no fixed number of registers, but programs
// divide by this number.
constexpr int registers_told = 32;

cudaError_t max_active_blocks(int* blocks, const void* function, int block_threads, std::size_t shared_bytes) {
  return api_call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&] {
    require(blocks != nullptr, cudaErrorInvalidValue);
    *blocks = blocks_per_multiprocessor(*find(function), process().current_device(), block_threads, shared_bytes);
  });
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return api_call("cudaFuncGetAttributes", [&] {
    require(attributes != nullptr, cudaErrorInvalidValue);
    const std::shared_ptr<kernel> what = find(function);
    const hpeKernelInfo info = what->info();
    *attributes = {};
    attributes->sharedSizeBytes = info.shared_bytes;
    attributes->constSizeBytes = info.constant_bytes;
    attributes->localSizeBytes = info.local_bytes;
    attributes->maxThreadsPerBlock = static_cast<int>(info.max_threads);
    attributes->numRegs = registers_told;
    attributes->ptxVersion = attributes->binaryVersion = info.architecture;
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(what->dynamic_shared_limit());
    attributes->preferredShmemCarveout = what->carveout();
    tell_cluster_attributes(*what, *attributes);
  });
}

cudaError_t CUDARTAPI cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return api_call("cudaFuncSetAttribute", [&] {
    const std::shared_ptr<kernel> what = find(function);
    const std::size_t most = process().devices().properties(process().current_device()).sharedMemPerBlockOptin;
    switch (attribute) {
      case cudaFuncAttributeMaxDynamicSharedMemorySize:
        require(value >= 0, cudaErrorInvalidValue);
        what->set_dynamic_shared_limit(static_cast<std::size_t>(value), most);
        break;
      case cudaFuncAttributePreferredSharedMemoryCarveout: what->set_carveout(value); break;
      default: set_cluster_attribute(*what, attribute, value); break;
    }
  });
}

/// The configuration is a hint, which has no effect on soft devices.
cudaError_t CUDARTAPI cudaFuncSetCacheConfig(const void* function, cudaFuncCache config) {
  return api_call("cudaFuncSetCacheConfig", [&] {
    require(config >= cudaFuncCachePreferNone && config <= cudaFuncCachePreferEqual, cudaErrorInvalidValue);
    find(function);
  });
}

cudaError_t CUDARTAPI cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig /*config*/) {
  return api_call("cudaFuncSetSharedMemConfig", [&] { find(function); });
}

cudaError_t CUDARTAPI cudaFuncGetName(const char** name, const void* function) {
  return api_call("cudaFuncGetName", [&] {
    require(name != nullptr, cudaErrorInvalidValue);
    *name = find(function)->name().c_str();
  });
}

cudaError_t CUDARTAPI cudaFuncGetParamInfo(const void* function, std::size_t index, std::size_t* offset,
                                           std::size_t* size) {
  return api_call("cudaFuncGetParamInfo", [&] {
    const hpeKernelInfo info = find(function)->info();
    require(offset != nullptr && index < info.parameter_count, cudaErrorInvalidValue);
    *offset = info.parameter_offsets[index];
    if (size != nullptr) *size = info.parameter_sizes[index];
  });
}

cudaError_t CUDARTAPI cudaGetKernel(cudaKernel_t* handle, const void* host_function) {
  return api_call("cudaGetKernel", [&] {
    require(handle != nullptr, cudaErrorInvalidValue);
    *handle = reinterpret_cast<cudaKernel_t>(find(host_function).get());
  });
}

cudaError_t CUDARTAPI cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  return api_call("cudaGetFuncBySymbol", [&] {
    require(function != nullptr, cudaErrorInvalidValue);
    *function = reinterpret_cast<cudaFunction_t>(find(symbol).get());
  });
}

cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                                    int block_threads, std::size_t shared_bytes) {
  return max_active_blocks(blocks, function, block_threads, shared_bytes);
}

cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                             int block_threads,
                                                                             std::size_t shared_bytes,
                                                                             unsigned /*flags*/) {
  return max_active_blocks(blocks, function, block_threads, shared_bytes);
}

cudaError_t CUDARTAPI cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* function, int blocks,
                                                                int block_threads) {
  return api_call("cudaOccupancyAvailableDynamicSMemPerBlock", [&] {
    require(bytes != nullptr && blocks > 0 && block_threads > 0, cudaErrorInvalidValue);
    const std::shared_ptr<kernel> what = find(function);
    const cudaDeviceProp& properties = process().devices().properties(process().current_device());
    require(blocks <= blocks_per_multiprocessor(*what, process().current_device(), block_threads, 0),
            cudaErrorInvalidValue);
    const std::size_t each = properties.sharedMemPerMultiprocessor / static_cast<unsigned>(blocks);
    const std::size_t used = what->info().shared_bytes + properties.reservedSharedMemPerBlock;
    *bytes = std::min(each - std::min(each, used), properties.sharedMemPerBlockOptin - what->info().shared_bytes);
  });
}
}
