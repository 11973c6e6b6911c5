// The functions of the CUDA runtime that hpe does not implement.

#include "interpose/cudart/errors.h"
#include "runtime/base/log.h"

/// Called by the weak definitions that generate.py makes, with the name of the function.
extern "C" cudaError_t hpe_cudart_absent(const char* function) noexcept {
  return hpe::cudart::api_call_always(function, [&] {
    hpe::log(hpe::log_level::info, "{}: not implemented on soft devices", function);
    return cudaErrorNotSupported;
  });
}
