#pragma once

#include "runtime/device/ptx_module.h"
#include "runtime/ptx/program/program.h"

namespace hpe::device {

/// Describes the kernels of a program, in the program's order.
[[nodiscard]] std::vector<ptx_kernel> describe_kernels(const ptx::program& p);

}  // namespace hpe::device
