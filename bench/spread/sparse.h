#pragma once

#include "bench/spread/workloads.h"

namespace hpe::bench {

/// Returns products of a sparse matrix and a vector in the formats CSR, COO, ELL, HYB and JDS, and a search in a graph.
/// The matrix has 16 to 48 elements in a row, at random columns.
[[nodiscard]] std::vector<named_program> sparse_programs(double factor);

}  // namespace hpe::bench
