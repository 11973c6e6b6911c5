#pragma once

#include <new>

#include "runtime/base/error.h"
#include "runtime/trace/recorder.h"

namespace hpe::core {

/// Keeps the sentence that hpeGetLastErrorMessage gives the calling thread.
void remember_error(const char* message) noexcept;

/// While it lives, the calling thread runs a function of the program that hpe calls under its locks. Functions of the C
/// interface that the thread calls meanwhile would wait for themselves, and fail instead.
class inside_callback {
 public:
  inside_callback() noexcept;
  ~inside_callback();
  inside_callback(const inside_callback&) = delete;
  inside_callback& operator=(const inside_callback&) = delete;
};

/// Throws HPE_ERROR_INVALID_ARGUMENT inside of one.
void require_no_callback();

/// Runs the body of a function of the C interface and turns what it throws into a status.
template <class Body>
hpeStatus guarded(Body&& body, const char* function = __builtin_FUNCTION()) noexcept {
  const trace::span here(trace::category::call, function);
  try {
    require_no_callback();
    body();
    return HPE_SUCCESS;
  } catch (const error& e) {
    remember_error(e.what());
    return e.status();
  } catch (const std::bad_alloc&) {
    remember_error("the host has no memory left for the runtime's own records");
    return HPE_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    remember_error(e.what());
    return HPE_ERROR_INTERNAL;
  }
}

}  // namespace hpe::core
