// The C interface: the names of status codes, and the message of a thread's last error.

#include <new>
#include <string>

#include "hpe/hpe.h"
#include "runtime/base/per_thread.h"
#include "runtime/core/api/api_guard.h"

namespace hpe::core {

namespace {

constinit thread_local const char* last_sentence = "";  // the text of the thread's error_text, or a literal
struct error_text {
  error_text() = default;
  error_text(const error_text&) = delete;
  error_text& operator=(const error_text&) = delete;
  ~error_text() { last_sentence = ""; }
  std::string text;
};

}  // namespace

void remember_error(const char* message) noexcept {
  try {
    last_sentence = per_thread<error_text>::get().text.assign(message).c_str();
  } catch (const std::bad_alloc&) {
    last_sentence = "the host has no memory left, not even for the message of this error";
  }
}

}  // namespace hpe::core

const char* hpeStatusName(hpeStatus status) {
  switch (status) {
#define HPE_NAME(name) \
  case name: return #name;
    HPE_NAME(HPE_SUCCESS)
    HPE_NAME(HPE_ERROR_INVALID_ARGUMENT)
    HPE_NAME(HPE_ERROR_NOT_A_REGION)
    HPE_NAME(HPE_ERROR_OUT_OF_MEMORY)
    HPE_NAME(HPE_ERROR_INVALID_DEVICE)
    HPE_NAME(HPE_ERROR_NOT_FOUND)
    HPE_NAME(HPE_ERROR_LAUNCH_FAILED)
    HPE_NAME(HPE_ERROR_DEVICE_LOST)
    HPE_NAME(HPE_ERROR_NOT_SUPPORTED)
    HPE_NAME(HPE_ERROR_INITIALIZATION)
    HPE_NAME(HPE_ERROR_FORKED)
    HPE_NAME(HPE_ERROR_SYSTEM)
    HPE_NAME(HPE_ERROR_INTERNAL)
#undef HPE_NAME
  }
  return "unknown status";
}

const char* hpeGetLastErrorMessage(void) { return hpe::core::last_sentence; }
