#pragma once

/// Functions that the CUDA compiler expects of a device: vprintf, malloc, free, __assertfail.

#include "runtime/ptx/block.h"

namespace hpe::ptx {

/// formals is the callee's parameter memory, results first (program.h). The block's current thread is the caller.
void call_system(block_context& block, const function& callee, std::uint8_t* formals);

/// As printf of C, with the arguments laid out one after the other, each at a multiple of its size, as vprintf gets
/// them.
[[nodiscard]] std::string format_message(const char* format, const void* arguments);

}  // namespace hpe::ptx
