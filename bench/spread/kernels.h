#pragma once

#include <string>

namespace hpe::bench {

/// The PTX of tests/ptx/programs/single_gpu.cu, which is part of the program.
[[nodiscard]] std::string single_gpu_kernels();

}  // namespace hpe::bench
