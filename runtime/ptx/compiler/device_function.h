#pragma once

/// Functions that stay functions: those in which threads do not meet.

#include "runtime/ptx/compiler/emitter.h"

namespace hpe::ptx {

/// The code of one; what it looks like is told at has_scalar_parameters.
void emit_device_function(module_context& shared, std::uint32_t number);
/// Its declaration, so that calls can be emitted.
void declare_device_function(module_context& shared, std::uint32_t number);

}  // namespace hpe::ptx
