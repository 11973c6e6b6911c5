#pragma once

#include "runtime/device/device_ptx_module.h"
#include "runtime/ptx/program/ptx_program.h"

namespace hpe::device {

/// Describes the kernels of a PTX program, in the order in which the program defines them. Throws
/// HPE_ERROR_INVALID_ARGUMENT if a kernel has more than most_parameters bytes of parameters.
[[nodiscard]] std::vector<ptx_kernel> describe_kernels(const ptx::program& p);

}  // namespace hpe::device
