#pragma once

#include <new>

#include "runtime/base/error.h"

namespace hpe::core {

/// Keeps the sentence that hpeGetLastErrorMessage gives the calling thread.
void remember_error(const char* message) noexcept;

/// Runs the body of a function of the C interface and turns what it throws into a status.
template <class Body>
hpeStatus guarded(Body&& body) noexcept {
  try {
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
