#pragma once

#include <string>

namespace hpe::bench {

/// Returns the PTX of tests/ptx/programs/single_gpu.cu, which the program contains.
[[nodiscard]] std::string single_gpu_kernels();

}  // namespace hpe::bench
