// Each thread has its own last error. The process has one sticky error, which the first fault sets.

#include "interpose/soft/cudart/device/errors.h"

#include <cuda_runtime_api.h>

#include <array>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/thread_state.h"
#include "runtime/base/log.h"
#include "runtime/trace/refusals.h"

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

/// Returns the log level for a failure. Programs often continue after a lack of memory (with null pointers), after an
/// unsupported call (without the feature), or after a refused image (with another form of the module). So the default
/// log shows the first lack of memory and, for each function, the first unsupported call, the first image that the
/// function refuses with a reason, and the first error of hpe itself.
log_level level_of(const char* function, cudaError_t code, bool has_reason) {
  const bool is_image = (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidKernelImage) && has_reason;
  if (code != cudaErrorMemoryAllocation && code != cudaErrorNotSupported && code != cudaErrorUnknown && !is_image)
    return log_level::info;
  static std::mutex mutex;
  static std::set<std::pair<cudaError_t, std::string>> told;
  const std::scoped_lock lock(mutex);
  const bool is_first = told.emplace(code, code == cudaErrorMemoryAllocation ? "" : function).second;
  return is_first ? log_level::warn : log_level::info;
}

/// Returns the sentence for the log if hpe's CUDA runtime itself has detected an error and there is no more specific
/// reason.
const char* reason_for(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "the device or its pool has no memory left (HPE_SOFT_MEMORY sets how much a device has)";
    case cudaErrorNotSupported: return "soft devices do not support this call or one of its arguments";
    default: return describe(code).sentence;
  }
}

/// If `reason` is null, logs the sentence for the code.
void log_failure(const char* function, cudaError_t code, const char* reason) noexcept {
  try {
    log(level_of(function, code, reason != nullptr), "{}: {}: {}", function, describe(code).name,
        reason != nullptr ? reason : reason_for(code));
  } catch (const std::exception&) {  // there is not enough host memory to log the failure
    return;
  }
}

}  // namespace

std::string words_for_call(const void* function, std::uint64_t /*none*/, std::uint64_t /*nothing*/) {
  return std::string(static_cast<const char*>(function)) + " waits for work that the program queued on devices";
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
  const bool is_answer = code == cudaSuccess || code == cudaErrorNotReady;  // these codes are not errors
  if (!is_answer) this_thread().last_error = code;
  return code;
}

void sticky_error::set(cudaError_t code, const char* sentence) noexcept {
  trace::refusals::add();
  cudaError_t none = cudaSuccess;
  if (!code_.compare_exchange_strong(none, code, std::memory_order_acq_rel)) return;
  try {
    log(log_level::error, "{}", sentence);
  } catch (const std::exception&) {  // there is too little host memory to print the sentence
    return;
  }
}

cudaError_t code_of_current_exception(const char* function) noexcept {
  try {
    throw;
  } catch (const failure& caught) {
    log_failure(function, caught.code(), caught.reason().empty() ? nullptr : caught.reason().c_str());
    return caught.code();
  } catch (const error& caught) {
    const cudaError_t code = translate(caught.status());
    log_failure(function, code, caught.what());
    return code;
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  } catch (const std::exception& caught) {
    log_failure(function, cudaErrorUnknown, caught.what());
    return cudaErrorUnknown;
  } catch (...) {
    log_failure(function, cudaErrorUnknown, "an exception of an unknown type was thrown");
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
