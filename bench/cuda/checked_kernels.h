#pragma once

#include <string>
#include <vector>

/// The CUDA code of the benchmark check.
namespace hpe::bench {

/// The names of kernels that access memory in different ways.
[[nodiscard]] const std::vector<std::string>& checked_kernels();

/// Launches a kernel repeatedly on arrays of 16 MiB, and waits for it. Throws if CUDA reports an error.
void launch_checked_kernel(const std::string& name, unsigned launches);

}  // namespace hpe::bench
