// Computes c = a + b for odd sizes.
#include <vector>

#include "check.h"

__global__ void add(const float* a, const float* b, float* c, std::size_t n) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

int main() {
  for (const std::size_t n : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20, (std::size_t{40} << 20) + 17}) {
    std::vector<float> a(n), b(n), c(n, -1);
    for (std::size_t i = 0; i < n; ++i) a[i] = float(i % 1000), b[i] = float(i % 77);
    float *x, *y, *z;
    CHECK(cudaMalloc(&x, n * sizeof *x));
    CHECK(cudaMalloc(&y, n * sizeof *y));
    CHECK(cudaMalloc(&z, n * sizeof *z));
    CHECK(cudaMemcpy(x, a.data(), n * sizeof *x, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(y, b.data(), n * sizeof *y, cudaMemcpyDefault));
    add<<<unsigned((n + 255) / 256), 256>>>(x, y, z, n);
    CHECK(cudaMemcpy(c.data(), z, n * sizeof *z, cudaMemcpyDeviceToHost));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += c[i] != a[i] + b[i];
    std::printf("%zu: %zu wrong, %016llx\n", n, wrong, (unsigned long long)digest(c.data(), n * sizeof(float)));
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    CHECK(cudaFree(z));
  }
}
