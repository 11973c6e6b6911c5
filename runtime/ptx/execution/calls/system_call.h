#pragma once

/// The functions that the CUDA compiler expects on a device: vprintf, malloc, free, __assertfail, and the functions of
/// the device runtime.

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// Executes a call of one of these functions by thread block.current. `formals` is the callee's parameter memory,
/// results first (function::formals).
void call_system(block_context& block, const function& callee, std::uint8_t* formals);

struct formatted_text {
  std::string text;
  std::uint32_t arguments = 0;  ///< the number of arguments that the format used
};

/// Formats like printf in C. `arguments` is the argument buffer of vprintf, which contains the arguments in order, each
/// at an offset that is a multiple of its size.
[[nodiscard]] formatted_text format_message(const char* format, const void* arguments);

}  // namespace hpe::ptx
