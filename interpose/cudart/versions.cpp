// Versions, profilers, and the driver that is not there.

#include <cuda_runtime_api.h>

#include "interpose/cudart/context.h"

using namespace hpe::cudart;

extern "C" {

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version) {
  return api_call_always("cudaRuntimeGetVersion", [&] {
    require(version != nullptr, cudaErrorInvalidValue);
    *version = CUDART_VERSION;
  });
}

/// The version of CUDA that what lies below this library can do. There is no driver, which CUDA would tell as 0;
/// programs take that as a reason to stop, though all that they want to know is whether their runtime works.
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
