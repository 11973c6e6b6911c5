// Functions of the driver that hpe does not implement.

#include <cuda.h>

#include "interpose/soft/cudart/device/features.h"
#include "interpose/soft/libcuda/call.h"

/// Called by the weak definitions that generate.py makes, with the name of the function.
extern "C" CUresult hpe_libcuda_absent(const char* function) noexcept {
  return hpe::libcuda::call_always(
      function, [&] { throw hpe::cudart::failure(cudaErrorNotSupported, hpe::cudart::missing_feature(function)); });
}
