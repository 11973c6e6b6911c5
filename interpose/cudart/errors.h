#pragma once

/// Errors as CUDA keeps them, and how calls report them.
///
/// Inside, failures are thrown: failure for an error of CUDA's, hpe::error for hpe's. api_call turns them into the code
/// that the call returns and that the thread remembers for cudaGetLastError.

#include <driver_types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>

#include "hpe/error.hpp"
#include "interpose/cudart/failure.h"
#include "runtime/trace/stalls.h"

namespace hpe::cudart {

/// Throws hpe::error with hpe's sentence unless the status is HPE_SUCCESS.
void check(hpeStatus status);

/// The error of CUDA's that says what a status of hpe's says.
[[nodiscard]] cudaError_t translate(hpeStatus status) noexcept;

/// What the calling thread's cudaGetLastError gives becomes code, unless that is cudaSuccess or cudaErrorNotReady.
/// Returns code.
cudaError_t remember(cudaError_t code) noexcept;

/// The error of a kernel that faulted. Every call that does work fails with it from then on, in all threads, until
/// cudaDeviceReset. Thread-safe.
class sticky_error {
 public:
  /// The first one counts. sentence, hpe's own, is told on standard error then.
  void set(cudaError_t code, const char* sentence) noexcept;
  void clear() noexcept { code_.store(cudaSuccess, std::memory_order_release); }
  [[nodiscard]] cudaError_t get() const noexcept { return code_.load(std::memory_order_acquire); }

 private:
  std::atomic<cudaError_t> code_{cudaSuccess};
};

/// The code for the exception that is being handled; logs its sentence at level info. Only inside a catch.
[[nodiscard]] cudaError_t code_of_current_exception(const char* function) noexcept;

/// The process's sticky error; cudaSuccess if there is none.
[[nodiscard]] cudaError_t sticky_code() noexcept;

/// For trace::awaited: the name of a function.
[[nodiscard]] std::string words_for_call(const void* function, std::uint64_t none, std::uint64_t nothing);

/// Runs the body of an exported function, which returns a cudaError_t or nothing. function is its name, for the log.
/// Calls that work after a fault too (error queries, versions, cudaDeviceReset) use api_call_always.
template <class Body>
cudaError_t api_call_always(const char* function, Body&& body) noexcept {
  const trace::awaited here({words_for_call, function});
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return cudaSuccess;
    } else {
      return remember(body());
    }
  } catch (...) {
    return remember(code_of_current_exception(function));
  }
}

template <class Body>
cudaError_t api_call(const char* function, Body&& body) noexcept {
  if (const cudaError_t code = sticky_code(); code != cudaSuccess) return remember(code);
  return api_call_always(function, static_cast<Body&&>(body));
}

}  // namespace hpe::cudart
