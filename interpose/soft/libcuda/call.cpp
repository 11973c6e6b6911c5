#include "interpose/soft/libcuda/call.h"

#include <exception>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/thread_state.h"
#include "interpose/soft/libcuda/contexts.h"

namespace hpe::libcuda {

using cudart::require;
using cudart::this_thread;

const char* name_of(CUresult code) noexcept {
  switch (code) {
#define HPE_LIBCUDA_RESULT(name) \
  case name:                     \
    return #name;
#include <results.def>
#undef HPE_LIBCUDA_RESULT
    default: return nullptr;
  }
}

CUresult result_of(cudaError_t code) noexcept {
  switch (code) {
    case cudaErrorInvalidSymbol: return CUDA_ERROR_NOT_FOUND;
    case cudaErrorInvalidDeviceFunction: return CUDA_ERROR_INVALID_HANDLE;
    case cudaErrorInvalidConfiguration: return CUDA_ERROR_INVALID_VALUE;
    default: break;
  }
  const auto same = static_cast<CUresult>(code);
  return name_of(same) != nullptr ? same : CUDA_ERROR_INVALID_VALUE;  // invalid arguments cause all other codes
}

driver_scope::driver_scope(const char* function) noexcept
    : last_error_(this_thread().last_error), is_outermost_(this_thread().call == nullptr), named_(function) {
  if (!is_outermost_ || !this_thread().uses_device) return;
  try {
    contexts().follow_runtime();
  } catch (const std::exception&) {  // the program's call fails for the same reason
    return;
  }
}

driver_scope::~driver_scope() {
  cudart::thread_state& thread = this_thread();
  thread.last_error = last_error_;
  thread.uses_device = false;
}

void require_initialized() { require(cudart::process().has_started(), cudaErrorInitializationError); }

void require_context() {
  const auto current = context_table::current();
  require(current != nullptr, cudaErrorDeviceUninitialized);
  require(current->is_active(), cudaErrorContextIsDestroyed);
}

}  // namespace hpe::libcuda
