#pragma once

/// The part of the benchmark that nvcc compiles.
namespace hpe::bench {

/// What a program with fifty kernels does: allocates memory, launches each kernel once, and returns the sum of all
/// results. Throws if CUDA reports an error.
double launch_fifty_kernels();

}  // namespace hpe::bench
