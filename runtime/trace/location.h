#pragma once

#include <span>
#include <string>

namespace hpe::trace {

/// The place in the program of a stack of return addresses, innermost first: "file:line" of the innermost frame with
/// debug information, or else the innermost function of the program. Frames of hpe, CUDA and the C library are skipped.
/// Loads libhpe-stacks.so, which reads debug information. Not in signal handlers.
[[nodiscard]] std::string location_of(std::span<void* const> stack);
/// location_of() for the stack of the calling thread.
[[nodiscard]] std::string location_of_caller();

}  // namespace hpe::trace
