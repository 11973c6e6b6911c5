#pragma once

/// CUDA's device runtime: the functions of the CUDA runtime that kernels can call. Their names are the names that the
/// CUDA compiler uses in PTX (__cudaCDP2LaunchDeviceV2; before CUDA 12, cudaLaunchDeviceV2).

#include <string_view>

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// Returns whether hpe's device runtime has a function of this name.
[[nodiscard]] bool is_in_device_runtime(std::string_view function);

/// For a function for which is_in_device_runtime() is false. Returns whether the name belongs to CUDA's device runtime,
/// so that the missing function is a limit of hpe and not an error of the program.
[[nodiscard]] bool is_absent_from_device_runtime(std::string_view function);

/// Returns whether these bytes belong to a text that the device runtime returns to kernels (cudaGetErrorString).
[[nodiscard]] bool is_text_of_device_runtime(std::uint64_t address, std::size_t bytes);

/// Executes a call of a function of the device runtime by thread block.current. `formals` is the callee's parameter
/// memory, results first (function::formals).
void call_device_runtime(block_context& block, const function& callee, std::uint8_t* formals);

}  // namespace hpe::ptx
