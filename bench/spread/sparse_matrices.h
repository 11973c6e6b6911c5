#pragma once

#include "bench/spread/workloads.h"

namespace hpe::bench {

/// Returns programs that multiply a sparse matrix and a vector in the formats CSR, COO, ELL, HYB and JDS, and a program
/// that searches a graph. factor: as in single_gpu_programs(). The matrix has 16 to 48 elements in each row, at random
/// columns.
[[nodiscard]] std::vector<named_program> sparse_programs(double factor);

}  // namespace hpe::bench
