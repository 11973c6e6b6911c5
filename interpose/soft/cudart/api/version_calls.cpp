// The functions for versions, for the profiler, and for access to NVIDIA's driver, which does not exist on soft
// devices.

#include <cuda_runtime_api.h>

#include "interpose/soft/cudart/device/context.h"

using namespace hpe::cudart;

extern "C" {

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version) {
  return api_call_always("cudaRuntimeGetVersion", [&] {
    require(version != nullptr, cudaErrorInvalidValue);
    *version = CUDART_VERSION;
  });
}

/// Returns the CUDA version of the runtime. CUDA's runtime returns 0 if there is no driver, but many programs stop if
/// the result is 0, although they only test whether the runtime works.
cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t CUDARTAPI cudaProfilerStart() { return cudaSuccess; }
cudaError_t CUDARTAPI cudaProfilerStop() { return cudaSuccess; }

cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char* symbol, void** entry, unsigned /*version*/,
                                                       unsigned long long flags,
                                                       cudaDriverEntryPointQueryResult* result) {
  return api_call_always("cudaGetDriverEntryPointByVersion", [&] {
    require(symbol != nullptr && entry != nullptr && flags <= cudaEnablePerThreadDefaultStream, cudaErrorInvalidValue);
    *entry = nullptr;
    if (result != nullptr) *result = cudaDriverEntryPointSymbolNotFound;
  });
}

cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char* symbol, void** entry, unsigned long long flags,
                                              cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(symbol, entry, CUDART_VERSION, flags, result);
}
}
