#pragma once

#include <span>
#include <string>

namespace hpe::trace {

/// Returns the place in the program to which a call stack belongs: the Python line if the stack has one; otherwise
/// "file:line" of the innermost frame with debug information; otherwise the innermost function of the program;
/// "somewhere" if there is none. `stack` begins with the innermost frame. Frames of hpe, CUDA and the C library are
/// skipped. Loads libhpe-stacks.so, which reads debug information. Must not be called in signal handlers.
[[nodiscard]] std::string location_of(std::span<void* const> stack);
/// Returns location_of() for the stack of the calling thread.
[[nodiscard]] std::string location_of_caller();

}  // namespace hpe::trace
