// Functions of the driver that hpe does not implement.

#include <cuda.h>

#include "interpose/soft/cudart/device/features.h"
#include "interpose/soft/libcuda/call.h"

/// The weak definitions that generate.py generates call this function with their own name.
extern "C" CUresult hpe_libcuda_absent(const char* function) noexcept {
  return hpe::libcuda::call_always(
      function, [&] { throw hpe::cudart::failure(cudaErrorNotSupported, hpe::cudart::missing_feature(function)); });
}
