#pragma once

/// The last error of a thread, the sticky error of the process, and the functions with which calls report errors.
///
/// Inside the library, failures are exceptions: class failure for an error of CUDA, hpe::error for an error of hpe.
/// api_call converts the exception to the code that the call returns and that the thread keeps for cudaGetLastError.

#include <driver_types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>

#include "hpe/error.hpp"
#include "interpose/soft/cudart/device/failure.h"
#include "interpose/soft/cudart/device/thread_state.h"
#include "runtime/trace/stalls.h"

namespace hpe::cudart {

/// Throws hpe::error with hpe's last error message unless status is HPE_SUCCESS.
void check(hpeStatus status);

/// Returns the CUDA error code for a status of hpe.
[[nodiscard]] cudaError_t translate(hpeStatus status) noexcept;

/// Makes `code` the calling thread's last error (cudaGetLastError), unless `code` is cudaSuccess or cudaErrorNotReady.
/// Returns code.
cudaError_t remember(cudaError_t code) noexcept;

/// The error of the process after a kernel has faulted. Every later call that runs its body by api_call fails with this
/// error, in all threads, until cudaDeviceReset. Thread-safe.
class sticky_error {
 public:
  /// If there is no sticky error, sets it and logs `sentence`, hpe's message, at level error. Otherwise, the earlier
  /// error remains.
  void set(cudaError_t code, const char* sentence) noexcept;
  void clear() noexcept { code_.store(cudaSuccess, std::memory_order_release); }
  [[nodiscard]] cudaError_t get() const noexcept { return code_.load(std::memory_order_acquire); }

 private:
  std::atomic<cudaError_t> code_{cudaSuccess};
};

/// Returns the error code for the exception that is being handled. Logs what happened, except std::bad_alloc, normally
/// at level info. The level is warn for the first lack of memory in the process and, for each function, for the first
/// unsupported call, the first image that cannot be loaded, and the first error of hpe itself (cudaErrorUnknown). To be
/// called only inside a catch block.
[[nodiscard]] cudaError_t code_of_current_exception(const char* function) noexcept;

/// Returns the sticky error of the process; cudaSuccess if there is no sticky error.
[[nodiscard]] cudaError_t sticky_code() noexcept;

/// Returns the text for trace::awaited. `function` is the name of the CUDA function; the numbers are not used.
[[nodiscard]] std::string words_for_call(const void* function, std::uint64_t none, std::uint64_t nothing);

/// Runs the body of an exported function; the body returns a cudaError_t or nothing. `function` is the name of the
/// exported function. Messages contain the name of the function that the program has called, which may be another one.
/// Functions that must also work after a fault (error queries, versions, cudaDeviceReset) use api_call_always.
template <class Body>
cudaError_t api_call_always(const char* function, Body&& body) noexcept {
  const call_scope scope(function);
  const trace::awaited here({words_for_call, this_thread().call});
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return cudaSuccess;
    } else {
      return remember(body());
    }
  } catch (...) {
    return remember(code_of_current_exception(this_thread().call));
  }
}

template <class Body>
cudaError_t api_call(const char* function, Body&& body) noexcept {
  if (const cudaError_t code = sticky_code(); code != cudaSuccess) return remember(code);
  return api_call_always(function, static_cast<Body&&>(body));
}

}  // namespace hpe::cudart
