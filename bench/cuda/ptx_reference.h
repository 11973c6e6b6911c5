#pragma once

/// The kernels of tests/ptx/programs as plain C++ loops, compiled with -O2. Each is a loop over the blocks; in it, each
/// section of the kernel between barriers becomes a loop over the threads.

#include <cstdint>

namespace hpe::bench::ptx_reference {

void vector_add(const float* a, const float* b, float* c, unsigned n);
/// Computes y = p(x) in double precision, for a polynomial p with 32 coefficients.
void polynomial(const double* x, double* y, unsigned n);
void stencil(const float* coefficients, const float* now, float* next, const float* velocity, int nx, int ny, int nz);
void matmul(const float* a, const float* b, float* c, int n);
void block_scan(const int* in, int* out, unsigned n, unsigned threads);
void histogram(const std::uint8_t* data, unsigned* bins, unsigned n, unsigned blocks, unsigned threads);
void bitonic(int* data, unsigned blocks, unsigned threads);
float group_sum(const float* data, unsigned n, unsigned blocks, unsigned threads);
void recursion(unsigned* out, unsigned threads);
void row_sums(const float* a, const double* x, double* y, int rows, int n);

}  // namespace hpe::bench::ptx_reference
