#include "bench/cuda/ptx_reference.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hpe::bench::ptx_reference {

void vector_add(const float* a, const float* b, float* c, unsigned n) {
  for (unsigned i = 0; i < n; ++i) c[i] = a[i] + b[i];
}

// GCC compiles __builtin_fma to an instruction only if the target processor has fma; the product and sum are then
// rounded once, as on a GPU.
__attribute__((target("fma,avx2"))) void polynomial(const double* x, double* y, unsigned n) {
  for (unsigned i = 0; i < n; ++i) {
    double sum = 0;
    for (int k = 0; k < 32; ++k) sum = __builtin_fma(sum, x[i], 1.0 / (1 + k));
    y[i] = sum;
  }
}

void stencil(const float* coefficients, const float* now, float* next, const float* velocity, int nx, int ny, int nz) {
  const long row = nx, plane = static_cast<long>(nx) * ny;
  for (int z = 4; z < nz - 4; ++z) {
    for (int y = 4; y < ny - 4; ++y) {
      for (int x = 4; x < nx - 4; ++x) {
        const long i = z * plane + y * row + x;
        float sum = 3 * coefficients[0] * now[i];
        for (int r = 1; r <= 4; ++r) {
          sum += coefficients[r] * (now[i - r] + now[i + r] + now[i - r * row] + now[i + r * row] + now[i - r * plane] +
                                    now[i + r * plane]);
        }
        next[i] = 2 * now[i] - next[i] + velocity[i] * sum;
      }
    }
  }
}

void matmul(const float* a, const float* b, float* c, int n) {
  constexpr int tile = 16;
  float as[tile][tile], bs[tile][tile], sum[tile][tile];
  for (int block_row = 0; block_row < n; block_row += tile) {
    for (int block_column = 0; block_column < n; block_column += tile) {
      for (auto& line : sum) std::fill(line, line + tile, 0.0F);
      for (int k = 0; k < n; k += tile) {
        for (int y = 0; y < tile; ++y) {
          for (int x = 0; x < tile; ++x) {
            const int row = block_row + y, column = block_column + x;
            as[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0.0F;
            bs[y][x] = column < n && k + y < n ? b[(k + y) * n + column] : 0.0F;
          }
        }
        for (int y = 0; y < tile; ++y) {
          for (int x = 0; x < tile; ++x) {
            for (int i = 0; i < tile; ++i) sum[y][x] += as[y][i] * bs[i][x];
          }
        }
      }
      for (int y = 0; y < tile; ++y) {
        for (int x = 0; x < tile; ++x) {
          if (block_row + y < n && block_column + x < n) c[(block_row + y) * n + block_column + x] = sum[y][x];
        }
      }
    }
  }
}

namespace {

void warp_scan(int* values) {
  for (unsigned d = 1; d < 32; d *= 2) {
    int left[32];
    for (unsigned lane = 0; lane < 32; ++lane) left[lane] = values[lane >= d ? lane - d : lane];
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (lane >= d) values[lane] += left[lane];
    }
  }
}

}  // namespace

void block_scan(const int* in, int* out, unsigned n, unsigned threads) {
  std::vector<int> values(threads);
  for (unsigned first = 0; first < n; first += threads) {
    int totals[32];
    for (unsigned t = 0; t < threads; ++t) values[t] = first + t < n ? in[first + t] : 0;
    for (unsigned warp = 0; warp < threads / 32; ++warp) {
      warp_scan(values.data() + 32 * warp);
      totals[warp] = values[32 * warp + 31];
    }
    std::fill(totals + threads / 32, totals + 32, 0);
    warp_scan(totals);
    for (unsigned t = 0; t < threads; ++t) {
      if (t >= 32) values[t] += totals[t / 32 - 1];
      if (first + t < n) out[first + t] = values[t];
    }
  }
}

void histogram(const std::uint8_t* data, unsigned* bins, unsigned n, unsigned blocks, unsigned threads) {
  for (unsigned block = 0; block < blocks; ++block) {
    unsigned mine[256] = {};
    for (unsigned t = 0; t < threads; ++t) {
      for (unsigned i = block * threads + t; i < n; i += blocks * threads) ++mine[data[i]];
    }
    for (unsigned b = 0; b < 256; ++b) bins[b] += mine[b];
  }
}

void bitonic(int* data, unsigned blocks, unsigned threads) {
  std::vector<int> keys(threads);
  for (unsigned block = 0; block < blocks; ++block) {
    for (unsigned t = 0; t < threads; ++t) keys[t] = data[block * threads + t];
    for (unsigned k = 2; k <= threads; k *= 2) {
      for (unsigned j = k / 2; j > 0; j /= 2) {
        for (unsigned t = 0; t < threads; ++t) {
          const unsigned other = t ^ j;
          if (other > t) {
            const int x = keys[t], y = keys[other];
            if ((x > y) == ((t & k) == 0)) {
              keys[t] = y;
              keys[other] = x;
            }
          }
        }
      }
    }
    for (unsigned t = 0; t < threads; ++t) data[block * threads + t] = keys[t];
  }
}

float group_sum(const float* data, unsigned n, unsigned blocks, unsigned threads) {
  float total = 0;
  std::vector<float> mine(threads);
  for (unsigned block = 0; block < blocks; ++block) {
    for (unsigned t = 0; t < threads; ++t) {
      mine[t] = 0;
      for (unsigned i = block * threads + t; i < n; i += blocks * threads) mine[t] += data[i];
    }
    for (unsigned d = threads / 2; d > 0; d /= 2) {
      for (unsigned t = 0; t < d; ++t) mine[t] += mine[t + d];
    }
    total += mine[0];
  }
  return total;
}

namespace {

__attribute__((noinline)) unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

}  // namespace

void recursion(unsigned* out, unsigned threads) {
  for (unsigned t = 0; t < threads; ++t) out[t] = fibonacci(t % 20);
}

void row_sums(const float* a, const double* x, double* y, int rows, int n) {
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int j = 0; j < n; ++j) sum += static_cast<double>(a[r * n + j]) * x[j];
    y[r] = sum;
  }
}

}  // namespace hpe::bench::ptx_reference
