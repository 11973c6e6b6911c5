#pragma once

/// How functions of the driver run. They are thin: the work is done by functions and objects of interpose/cudart, whose
/// errors become codes of the driver.

#include <cuda.h>
#include <driver_types.h>

#include <type_traits>

#include "interpose/cudart/device/errors.h"

namespace hpe::libcuda {

/// The driver's code for an error of the runtime. Most codes have the same number and meaning.
[[nodiscard]] CUresult result_of(cudaError_t code) noexcept;

/// The name of a code, "CUDA_ERROR_INVALID_VALUE"; null if the driver has no such code.
[[nodiscard]] const char* name_of(CUresult code) noexcept;

/// Exists while a function of the driver runs in a thread: messages name that function instead of the runtime's
/// functions that it calls, and the runtime's last error does not change.
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

void require_initialized();  ///< throws cudaErrorInitializationError before the first cuInit or use of the runtime
void require_context();      ///< throws cudaErrorDeviceUninitialized or cudaErrorContextIsDestroyed

/// Runs the body of a function, which returns a cudaError_t or nothing and throws failure or hpe::error. These differ
/// in what must be before: nothing; cuInit; cuInit and a current context. The last two fail after a fault of a kernel.
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

/// What a pointer that the program gave points to. Throws cudaErrorInvalidValue for null.
template <class T>
T& given(T* pointer) {
  cudart::require(pointer != nullptr, cudaErrorInvalidValue);
  return *pointer;
}

}  // namespace hpe::libcuda
