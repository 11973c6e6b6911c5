// The functions of the CUDA runtime that hpe does not implement.

#include "interpose/cudart/device/errors.h"

/// Called by the weak definitions that generate.py makes, with the name of the function.
extern "C" cudaError_t hpe_cudart_absent(const char* function) noexcept {
  return hpe::cudart::api_call_always(function, [] { hpe::cudart::require(false, cudaErrorNotSupported); });
}
