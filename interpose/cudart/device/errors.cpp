// The last error belongs to a thread. The sticky error belongs to the process and is set once.

#include "interpose/cudart/device/errors.h"

#include <cuda_runtime_api.h>

#include <array>
#include <mutex>
#include <new>
#include <set>
#include <string>

#include "interpose/cudart/device/context.h"
#include "interpose/cudart/device/thread_state.h"
#include "runtime/base/log.h"

namespace hpe::cudart {

namespace {

struct description {
  cudaError_t code;
  const char* name;
  const char* sentence;
};

constexpr std::array descriptions{
#define HPE_CUDART_ERROR(code, sentence) description{code, #code, sentence},
#include <errors.def>  // made by generate.py
#undef HPE_CUDART_ERROR
};

constexpr description unknown{cudaErrorUnknown, "unrecognized error code", "unrecognized error code"};

const description& describe(cudaError_t code) noexcept {
  for (const description& each : descriptions) {
    if (each.code == code) return each;
  }
  return unknown;
}

/// Programs often go on after these two errors: with null pointers, or without the feature. So the default level of the
/// log shows the first failure for want of memory, and the first call of each function that is not supported.
log_level level_of(const char* function, cudaError_t code) {
  if (code != cudaErrorMemoryAllocation && code != cudaErrorNotSupported) return log_level::info;
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::scoped_lock lock(mutex);
  const bool is_first = told.insert(code == cudaErrorNotSupported ? function : "memory").second;
  return is_first ? log_level::warn : log_level::info;
}

void log_failure(const char* function, cudaError_t code, const char* sentence) noexcept {
  try {
    log(level_of(function, code), "{}: {}: {}", function, describe(code).name, sentence);
  } catch (const std::exception&) {  // no memory to remember that it was told
    return;
  }
}

/// For the log: why hpe's runtime, not hpe, gives this error.
const char* reason_for(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "the device or its pool has no memory left (HPE_SOFT_MEMORY sets how much a device has)";
    case cudaErrorNotSupported: return "soft devices do not support this call or one of its arguments";
    default: return describe(code).sentence;
  }
}

}  // namespace

std::string words_for_call(const void* function, std::uint64_t /*none*/, std::uint64_t /*nothing*/) {
  return std::string(static_cast<const char*>(function)) + " waits for work of the program on devices";
}

void check(hpeStatus status) {
  if (status != HPE_SUCCESS) throw error(status, hpeGetLastErrorMessage());
}

cudaError_t translate(hpeStatus status) noexcept {
  switch (status) {
    case HPE_SUCCESS: return cudaSuccess;
    case HPE_ERROR_INVALID_ARGUMENT:
    case HPE_ERROR_NOT_A_REGION: return cudaErrorInvalidValue;
    case HPE_ERROR_OUT_OF_MEMORY: return cudaErrorMemoryAllocation;
    case HPE_ERROR_INVALID_DEVICE: return cudaErrorInvalidDevice;
    case HPE_ERROR_NOT_FOUND: return cudaErrorSymbolNotFound;
    case HPE_ERROR_LAUNCH_FAILED: return cudaErrorLaunchFailure;
    case HPE_ERROR_DEVICE_LOST: return cudaErrorDevicesUnavailable;
    case HPE_ERROR_NOT_SUPPORTED: return cudaErrorNotSupported;
    case HPE_ERROR_INITIALIZATION:
    case HPE_ERROR_FORKED: return cudaErrorInitializationError;
    case HPE_ERROR_SYSTEM: return cudaErrorOperatingSystem;
    case HPE_ERROR_INTERNAL: return cudaErrorUnknown;
  }
  return cudaErrorUnknown;
}

cudaError_t remember(cudaError_t code) noexcept {
  const bool is_answer = code == cudaSuccess || code == cudaErrorNotReady;  // these are no errors
  if (!is_answer) this_thread().last_error = code;
  return code;
}

void sticky_error::set(cudaError_t code, const char* sentence) noexcept {
  cudaError_t none = cudaSuccess;
  if (!code_.compare_exchange_strong(none, code, std::memory_order_acq_rel)) return;
  try {
    log(log_level::error, "{}", sentence);
  } catch (const std::exception&) {  // no memory to print the sentence, but the code is set
    return;
  }
}

cudaError_t code_of_current_exception(const char* function) noexcept {
  try {
    throw;
  } catch (const failure& caught) {
    const bool has_reason = !caught.reason().empty();
    log_failure(function, caught.code(), has_reason ? caught.reason().c_str() : reason_for(caught.code()));
    return caught.code();
  } catch (const error& caught) {
    const cudaError_t code = translate(caught.status());
    log_failure(function, code, caught.what());
    return code;
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  } catch (...) {
    return cudaErrorUnknown;
  }
}

cudaError_t sticky_code() noexcept { return process().fault().get(); }

}  // namespace hpe::cudart

using namespace hpe::cudart;

extern "C" {

const char* CUDARTAPI cudaGetErrorName(cudaError_t error) { return describe(error).name; }
const char* CUDARTAPI cudaGetErrorString(cudaError_t error) { return describe(error).sentence; }

cudaError_t CUDARTAPI cudaPeekAtLastError() {
  const cudaError_t sticky = sticky_code();
  return sticky != cudaSuccess ? sticky : this_thread().last_error;
}

cudaError_t CUDARTAPI cudaGetLastError() {
  const cudaError_t last = cudaPeekAtLastError();
  this_thread().last_error = cudaSuccess;
  return last;
}
}
