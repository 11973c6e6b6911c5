// The functions of the CUDA runtime that hpe does not implement.

#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/device/features.h"

/// The weak definitions that generate.py generates call this function with their own name.
extern "C" cudaError_t hpe_cudart_absent(const char* function) noexcept {
  return hpe::cudart::api_call_always(
      function, [&] { throw hpe::cudart::failure(cudaErrorNotSupported, hpe::cudart::missing_feature(function)); });
}
