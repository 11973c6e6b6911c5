// Multiplies two matrices: by cuBLAS if device 0 is a GPU, otherwise by a loop on the CPU.
// cuBLAS and the loop use the same pointers.

#include <cublas_v2.h>

#include <algorithm>
#include <cstdio>
#include <hpe/cuda.hpp>
#include <stdexcept>

namespace {

constexpr int size = 64;

/// Computes c = a * b for square matrices that are stored column by column, as in Fortran.
void multiply_by_library(const hpe::array<float>& a, const hpe::array<float>& b,
                         hpe::array<float>& c) {
  cublasHandle_t library = nullptr;
  if (cublasCreate(&library) != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error("cuBLAS does not start");
  const float one = 1;
  const float zero = 0;
  hpe::enqueue(
      0,
      [&](cudaStream_t stream) {
        cublasSetStream(library, stream);
        return static_cast<int>(cublasSgemm(library, CUBLAS_OP_N, CUBLAS_OP_N, size, size,
                                            size, &one, a.data(), size, b.data(), size,
                                            &zero, c.data(), size));
      },
      hpe::in(a), hpe::in(b), hpe::out(c));
  hpe::synchronize();
  cublasDestroy(library);
}

void multiply_by_loop(const hpe::array<float>& a, const hpe::array<float>& b,
                      hpe::array<float>& c) {
  for (int column = 0; column < size; ++column) {
    for (int row = 0; row < size; ++row) {
      float sum = 0;
      for (int k = 0; k < size; ++k) sum += a[k * size + row] * b[column * size + k];
      c[column * size + row] = sum;
    }
  }
}

}  // namespace

int main() try {
  hpe::array<float> a(size * size);
  hpe::array<float> b(size * size);
  hpe::array<float> c(size * size);
  std::fill(a.begin(), a.end(), 2.0F);
  std::fill(b.begin(), b.end(), 3.0F);

  const bool gpu = hpe::device_info(0).kind == HPE_DEVICE_CUDA;
  (gpu ? multiply_by_library : multiply_by_loop)(a, b, c);
  std::printf("by %s: c[0] = %g\n", gpu ? "cuBLAS" : "a loop on the CPU", c[0]);
  return 0;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
