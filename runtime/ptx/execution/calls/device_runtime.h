#pragma once

/// CUDA's device runtime: the functions of the runtime that kernels can call, under the names that the CUDA compiler
/// gives them (__cudaCDP2LaunchDeviceV2; before CUDA 12, cudaLaunchDeviceV2).

#include <string_view>

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// Returns whether kernels may call a function of this name.
[[nodiscard]] bool is_in_device_runtime(std::string_view function);

/// Call this for a function for which is_in_device_runtime() is false. Returns whether its name is one of CUDA's device
/// runtime, so that hpe (and not the program) lacks the function.
[[nodiscard]] bool is_absent_from_device_runtime(std::string_view function);

/// Returns whether these bytes belong to a text that the device runtime returned to a kernel (cudaGetErrorString).
[[nodiscard]] bool is_text_of_device_runtime(std::uint64_t address, std::size_t bytes);

/// Executes a call of a function of the device runtime. `formals` is the callee's parameter memory, results first
/// (program.h). The calling thread is block.current.
void call_device_runtime(block_context& block, const function& callee, std::uint8_t* formals);

}  // namespace hpe::ptx
