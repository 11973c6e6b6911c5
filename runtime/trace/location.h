#pragma once

#include <span>
#include <string>

namespace hpe::trace {

/// Where in the program a stack of return addresses is, innermost first: "file:line" of the innermost place that has
/// debug information, or else the innermost function of the program; hpe, CUDA and the C library are passed over. Loads
/// what reads debug information. Not in signal handlers.
[[nodiscard]] std::string location_of(std::span<void* const> stack);
/// The same for the calling thread.
[[nodiscard]] std::string location_of_caller();

}  // namespace hpe::trace
