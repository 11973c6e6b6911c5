#pragma once

#include <cuda.h>

#include <exception>
#include <new>

#include "interpose/adopted_pointers.h"
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

/// Whether calls with these parameters may pass the program the address of memory: such calls store the address through
/// their first parameter.
template <class... Arguments>
inline constexpr bool passes_address = false;
template <class... Others>
inline constexpr bool passes_address<CUdeviceptr*, Others...> = true;

/// Makes a hook callable through the driver's C interface. call() catches all exceptions except the one with which the
/// C library ends a cancelled thread; the C library may throw this exception while the driver waits. call() also tells
/// adopted_pointers if the program may get the address of memory.
template <auto Hook>
struct guarded;
template <class... Arguments, CUresult(CUDAAPI* Hook)(Arguments...)>
struct guarded<Hook> {
  static CUresult CUDAAPI call(Arguments... arguments) {
    try {
      const CUresult result = Hook(arguments...);
      if constexpr (passes_address<Arguments...>) interpose::adopted_pointers::program_gets_memory();
      return result;
    } catch (...) {
      if (std::current_exception() == nullptr) throw;  // the C library's exception, which has no C++ object
      return result_of_current_exception();
    }
  }
};

}  // namespace hpe::cuda_hooks
