#pragma once

/// Running code that may crash, without dying of it.

#include <cstdint>
#include <functional>
#include <optional>

namespace hpe::device::soft {

struct crash {
  int signal = 0;
  int code = 0;  // si_code
  std::uintptr_t address = 0;
};

/// Once, at the start of the process.
void install_crash_handlers();

/// Runs body in this thread. If it raises SIGSEGV, SIGBUS, SIGFPE or SIGILL, it is left where it stands (its
/// destructors do not run, and locks that it holds stay locked) and the crash is returned. Outside of body such a
/// signal ends the process.
std::optional<crash> run_guarded(void (*body)(void*), void* argument);

template <class Body>
std::optional<crash> run_guarded(Body& body) {
  return run_guarded([](void* argument) { (*static_cast<Body*>(argument))(); }, &body);
}

}  // namespace hpe::device::soft
