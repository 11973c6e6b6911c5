#pragma once

#include <cuda.h>

#include <exception>
#include <new>

#include "interpose/gpu/oversubscribed/driver_result.h"
#include "runtime/base/log.h"

namespace hpe::cuda_hooks {

/// Returns the error code for a driver call of the program in which hpe has thrown an exception. To be called in an
/// exception handler. Logs what happened, except std::bad_alloc, which may occur thousands of times.
inline CUresult result_of_current_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    log(log_level::warn, "a call of the CUDA driver fails: {}", e.what());
    return result_of(e);
  } catch (...) {
    log(log_level::warn, "a call of the CUDA driver fails: an exception of an unknown type was thrown");
    return CUDA_ERROR_UNKNOWN;
  }
}

/// Runs note(), which records the effect of a driver call. If note() throws, runs undo(), which reverses the effect,
/// and rethrows.
template <class Note, class Undo>
void or_undo(const Note& note, const Undo& undo) {
  try {
    note();
  } catch (...) {
    undo();
    throw;
  }
}

/// Makes a hook callable through the driver's C interface. call() catches all exceptions except the one with which the
/// C library ends a cancelled thread; the C library may throw this exception while the driver waits.
template <auto Hook>
struct guarded;
template <class... Arguments, CUresult(CUDAAPI* Hook)(Arguments...)>
struct guarded<Hook> {
  static CUresult CUDAAPI call(Arguments... arguments) {
    try {
      return Hook(arguments...);
    } catch (...) {
      if (std::current_exception() == nullptr) throw;  // the C library's exception, which has no C++ object
      return result_of_current_exception();
    }
  }
};

}  // namespace hpe::cuda_hooks
