#pragma once

/// Functions in which threads do not meet. They are compiled as LLVM functions instead of being inlined into kernels.

#include "runtime/ptx/compiler/emitter.h"

namespace hpe::ptx {

/// Emits the code of a function. Its signature is described at has_scalar_parameters.
void emit_device_function(module_context& shared, std::uint32_t number);
/// Declares a function, so that calls can be emitted.
void declare_device_function(module_context& shared, std::uint32_t number);

}  // namespace hpe::ptx
