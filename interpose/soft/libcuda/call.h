#pragma once

/// Runs the bodies of the driver's functions, which call functions of interpose/soft/cudart, and converts errors of the
/// runtime to codes of the driver.

#include <cuda.h>
#include <driver_types.h>

#include <type_traits>

#include "interpose/soft/cudart/device/errors.h"

namespace hpe::libcuda {

/// Returns the driver's code for an error of the runtime. Most errors have the same number and meaning in both APIs.
[[nodiscard]] CUresult result_of(cudaError_t code) noexcept;

/// Returns the name of a code, such as "CUDA_ERROR_INVALID_VALUE"; null if the driver does not define the code.
[[nodiscard]] const char* name_of(CUresult code) noexcept;

/// Exists while the thread runs a function of the driver. Messages contain the name of this function, not the names of
/// the runtime's functions that it calls. The destructor restores the runtime's last error.
class driver_scope {
 public:
  explicit driver_scope(const char* function) noexcept;
  ~driver_scope();
  driver_scope(const driver_scope&) = delete;
  driver_scope& operator=(const driver_scope&) = delete;

 private:
  const cudaError_t last_error_;
  const bool is_outermost_;
  const cudart::call_scope named_;
};

void require_initialized();  ///< throws cudaErrorInitializationError before cuInit or the first use of the runtime
void require_context();      ///< throws cudaErrorDeviceUninitialized or cudaErrorContextIsDestroyed

/// Run the body of a function. The body returns a cudaError_t or nothing, and throws `failure` or hpe::error. The
/// preconditions differ: `call_always` has none, `call` requires cuInit, and `in_context` requires cuInit and a current
/// context. After a kernel has faulted, `call` and `in_context` fail.
template <class Body>
CUresult call_always(const char* function, Body&& body) noexcept {
  const driver_scope scope(function);
  return result_of(cudart::api_call_always(function, static_cast<Body&&>(body)));
}

template <class Body>
CUresult call(const char* function, Body&& body) noexcept {
  const driver_scope scope(function);
  return result_of(cudart::api_call(function, [&] {
    require_initialized();
    return body();
  }));
}

template <class Body>
CUresult in_context(const char* function, Body&& body) noexcept {
  return call(function, [&] {
    require_context();
    return body();
  });
}

/// Returns a device address, which is a number in the driver API, as a pointer.
inline void* pointer_of(CUdeviceptr address) noexcept { return reinterpret_cast<void*>(address); }

/// Returns the object to which a pointer of the program points. Throws cudaErrorInvalidValue if the pointer is null.
template <class T>
T& given(T* pointer) {
  cudart::require(pointer != nullptr, cudaErrorInvalidValue);
  return *pointer;
}

}  // namespace hpe::libcuda
