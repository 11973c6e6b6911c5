#pragma once

#include <span>
#include <string>

namespace hpe::trace {

/// The place in the program of a call_stack, innermost frame first: the line of Python if the stack has one, or else
/// "file:line" of the innermost frame with debug information, or else the innermost function of the program. Frames of
/// hpe, CUDA and the C library are skipped. Loads libhpe-stacks.so, which reads debug information. Not in signal
/// handlers.
[[nodiscard]] std::string location_of(std::span<void* const> stack);
/// location_of() for the stack of the calling thread.
[[nodiscard]] std::string location_of_caller();

}  // namespace hpe::trace
