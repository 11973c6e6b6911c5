#pragma once

/// Functions in which threads do not meet. The compiler emits them as LLVM functions instead of inlining them into
/// kernels.

#include "runtime/ptx/compiler/emitter.h"

namespace hpe::ptx {

/// Emits the code of a function. has_scalar_parameters describes its signature.
void emit_device_function(module_context& shared, std::uint32_t number);
/// Declares a function, so that code can call it.
void declare_device_function(module_context& shared, std::uint32_t number);

}  // namespace hpe::ptx
