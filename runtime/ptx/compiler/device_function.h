#pragma once

/// Functions without meetings (call_graph.h). The compiler emits them as LLVM functions instead of inlining them into
/// kernels.

#include "runtime/ptx/compiler/emitter.h"

namespace hpe::ptx {

/// Emits the LLVM function for function `number` of the program. has_scalar_parameters describes the signature of the
/// LLVM function.
void emit_device_function(module_context& shared, std::uint32_t number);
/// Declares the LLVM function for function `number`, so that emitted code can call it.
void declare_device_function(module_context& shared, std::uint32_t number);

}  // namespace hpe::ptx
