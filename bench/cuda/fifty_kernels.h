#pragma once

/// The part of the benchmark that nvcc compiles.
namespace hpe::bench {

/// The work of a program with fifty kernels: allocates memory, launches each kernel once, and returns the sum of all
/// results. Throws if CUDA reports an error.
double launch_fifty_kernels();

}  // namespace hpe::bench
