#pragma once

/// Functions that are compiled as functions, because threads do not meet in them.

#include "runtime/ptx/compiler/emitter.h"

namespace hpe::ptx {

/// Emits the code of a function; has_scalar_parameters describes its signature.
void emit_device_function(module_context& shared, std::uint32_t number);
/// Declares a function, so that calls can be emitted.
void declare_device_function(module_context& shared, std::uint32_t number);

}  // namespace hpe::ptx
