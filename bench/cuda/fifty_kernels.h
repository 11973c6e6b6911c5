#pragma once

/// The CUDA code of the benchmark kernel-cache.
namespace hpe::bench {

/// Allocates memory, launches fifty kernels once each, and returns the sum of all results. Throws if CUDA reports an
/// error.
double launch_fifty_kernels();

}  // namespace hpe::bench
