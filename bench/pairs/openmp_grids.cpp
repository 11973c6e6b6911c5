// The OpenMP versions of the programs on grids, matrices and images.

#include "bench/pairs/openmp_version.h"

namespace hpe::bench::pairs::openmp {

namespace {

struct stencil_2d_program {
  int n;
  std::vector<float> output, other;
  void run() {
    for (int s = 0; s < stencil_steps; ++s) {
      const float* in = s % 2 != 0 ? other.data() : output.data();
      float* out = s % 2 != 0 ? output.data() : other.data();
#pragma omp parallel for
      for (int y = 1; y < n - 1; ++y)
        for (int x = 1; x < n - 1; ++x) {
          const int i = y * n + x;
          out[i] = 0.5F * in[i] + 0.125F * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
        }
    }
  }
};

struct stencil_3d_program {
  int n;
  std::vector<float> output, other;
  void run() {
    const int plane = n * n;
    for (int s = 0; s < stencil_steps; ++s) {
      const float* in = s % 2 != 0 ? other.data() : output.data();
      float* out = s % 2 != 0 ? output.data() : other.data();
#pragma omp parallel for
      for (int z = 1; z < n - 1; ++z)
        for (int y = 1; y < n - 1; ++y)
          for (int x = 1; x < n - 1; ++x) {
            const int i = z * plane + y * n + x;
            out[i] =
                0.4F * in[i] + 0.1F * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + in[i - plane] + in[i + plane]);
          }
    }
  }
};

struct jacobi_program {
  int n;
  std::vector<float> start, a, b, output;
  void run() {
    a = start;
    b = start;
    float change = 0;
    for (int s = 0; s < jacobi_steps; ++s) {
      const float* in = s % 2 != 0 ? b.data() : a.data();
      float* out = s % 2 != 0 ? a.data() : b.data();
      change = 0;
#pragma omp parallel for reduction(+ : change)
      for (int y = 1; y < n - 1; ++y)
        for (int x = 1; x < n - 1; ++x) {
          const int i = y * n + x;
          const float next = 0.25F * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
          change += (next - in[i]) * (next - in[i]);
          out[i] = next;
        }
    }
    output.assign(1, change);
  }
};

struct system_program {
  int n;
  std::vector<float> a;
  std::vector<double> b, x, next, output;
  void run() {
    std::fill(x.begin(), x.end(), 0);
    for (int s = 0; s < jacobi_steps; ++s) {
      double change = 0;
#pragma omp parallel for reduction(+ : change)
      for (int row = 0; row < n; ++row) {
        double rest = b[row];
        for (int k = 0; k < n; ++k) rest -= static_cast<double>(a[row * n + k]) * x[k];
        rest /= static_cast<double>(a[row * n + row]);
        next[row] = x[row] + rest;
        change += std::fabs(rest);
      }
      std::swap(x, next);
      output.assign(1, change);
    }
  }
};

struct product_program {
  int n;
  std::vector<float> a, b, output;
  void run() {
    const float *x = a.data(), *y = b.data();
    float* z = output.data();
#pragma omp parallel for
    for (int row = 0; row < n; ++row) {
      for (int column = 0; column < n; ++column) z[row * n + column] = 0;
      for (int k = 0; k < n; ++k)
        for (int column = 0; column < n; ++column) z[row * n + column] += x[row * n + k] * y[k * n + column];
    }
  }
};

struct tiled_program {
  int n;
  std::vector<float> a, b, output;
  void run() {
    const float *x = a.data(), *y = b.data();
    float* z = output.data();
    std::fill(output.begin(), output.end(), 0.0F);
#pragma omp parallel for
    for (int rows = 0; rows < n; rows += 16)
      for (int ks = 0; ks < n; ks += 64)
        for (int columns = 0; columns < n; columns += 64)
          for (int row = rows; row < std::min(n, rows + 16); ++row)
            for (int k = ks; k < std::min(n, ks + 64); ++k)
              for (int column = columns; column < std::min(n, columns + 64); ++column)
                z[row * n + column] += x[row * n + k] * y[k * n + column];
  }
};

struct sparse_program {
  int n;
  sparse_matrix m;
  std::vector<double> x, output;
  void run() {
    const int *first = m.first.data(), *column = m.column.data();
    const double *value = m.value.data(), *from = x.data();
    double* y = output.data();
#pragma omp parallel for
    for (int r = 0; r < n; ++r) {
      double sum = 0;
      for (int i = first[r]; i < first[r + 1]; ++i) sum += value[i] * from[column[i]];
      y[r] = sum;
    }
  }
};

struct convolution_program {
  int n;
  std::vector<float> in, output, weights;
  void run() {
    const float *from = in.data(), *w = weights.data();
    float* to = output.data();
#pragma omp parallel for
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x) {
        float sum = 0;
        for (int dy = -filter_radius; dy <= filter_radius; ++dy)
          for (int dx = -filter_radius; dx <= filter_radius; ++dx) {
            const int u = std::min(std::max(x + dx, 0), n - 1), v = std::min(std::max(y + dy, 0), n - 1);
            sum += w[(dy + filter_radius) * (2 * filter_radius + 1) + dx + filter_radius] * from[v * n + u];
          }
        to[y * n + x] = sum;
      }
  }
};

struct median_program {
  int n;
  std::vector<std::uint8_t> in, output;
  void run() {
    const std::uint8_t* from = in.data();
    std::uint8_t* to = output.data();
#pragma omp parallel for
    for (int y = 1; y < n - 1; ++y)
      for (int x = 1; x < n - 1; ++x) {
        std::uint8_t v[9];
        for (int k = 0; k < 9; ++k) v[k] = from[(y + k / 3 - 1) * n + x + k % 3 - 1];
        for (int end = 8; end >= 4; --end)
          for (int k = 0; k < end; ++k) {
            const std::uint8_t low = std::min(v[k], v[k + 1]);
            v[k + 1] = std::max(v[k], v[k + 1]);
            v[k] = low;
          }
        to[y * n + x] = v[4];
      }
  }
};

struct mandelbrot_program {
  int n;
  std::vector<int> output;
  void run() {
    int* out = output.data();
#pragma omp parallel for schedule(dynamic, 4)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x) {
        const double cr = -2.0 + 2.5 * x / n, ci = -1.25 + 2.5 * y / n;
        double zr = 0, zi = 0;
        int k = 0;
        while (k < most_iterations && zr * zr + zi * zi < 4.0) {
          const double next = zr * zr - zi * zi + cr;
          zi = 2 * zr * zi + ci;
          zr = next;
          ++k;
        }
        out[y * n + x] = k;
      }
  }
};

struct roots_program {
  int n;
  std::vector<double> output;
  void run() {
    double* out = output.data();
#pragma omp parallel for
    for (int i = 0; i < n * n; ++i) {
      double zr = 0.5 + static_cast<double>(i % n) / n, zi = 0.5 + static_cast<double>(i / n) / n;
      for (int k = 0; k < 30; ++k) {
        const double sr = zr * zr - zi * zi, si = 2 * zr * zi;
        const double cr = sr * zr - si * zi - 1, ci = sr * zi + si * zr;
        const double dr = 3 * sr, di = 3 * si, norm = dr * dr + di * di;
        zr -= (cr * dr + ci * di) / norm;
        zi -= (ci * dr - cr * di) / norm;
      }
      out[2 * i] = zr;
      out[2 * i + 1] = zi;
    }
  }
};

struct transpose_program {
  int n;
  std::vector<float> in, output;
  void run() {
    const float* from = in.data();
    float* to = output.data();
#pragma omp parallel for
    for (int by = 0; by < n; by += 32)
      for (int bx = 0; bx < n; bx += 32)
        for (int y = by; y < by + 32; ++y)
          for (int x = bx; x < bx + 32; ++x) to[x * n + y] = from[y * n + x];
  }
};

}  // namespace

version stencil_2d(int n) { return make<stencil_2d_program>(n, inputs(squared(n)), inputs(squared(n))); }
version stencil_3d(int n) {
  return make<stencil_3d_program>(n, inputs(squared(n) * size_of(n)), inputs(squared(n) * size_of(n)));
}
version jacobi(int n) {
  auto program = std::make_shared<jacobi_program>(
      jacobi_program{n, inputs(squared(n)), std::vector<float>(squared(n)), std::vector<float>(squared(n)), {}});
  return {[program] { program->run(); },
          [program] {
            std::vector<double> values = as_doubles(program->a);
            values.push_back(static_cast<double>(program->output[0]) * 1e-3);
            return values;
          }};
}
version linear_system(int n) {
  const std::vector<double> zeros(size_of(n));
  auto program = std::make_shared<system_program>(
      system_program{n, system_matrix(n), std::vector<double>(size_of(n), 2 * n), zeros, zeros, {}});
  return {[program] { program->run(); },
          [program] {
            std::vector<double> values = program->x;
            values.push_back(program->output[0]);
            return values;
          }};
}
version product(int n) {
  return make<product_program>(n, inputs(squared(n)), inputs(squared(n)), std::vector<float>(squared(n)));
}
version tiled_product(int n) {
  return make<tiled_program>(n, inputs(squared(n)), inputs(squared(n)), std::vector<float>(squared(n)));
}
version sparse_product(int n) {
  const std::vector<float> x = inputs(size_of(n));
  return make<sparse_program>(n, make_sparse(n), as_doubles(x), std::vector<double>(size_of(n)));
}
version convolution(int n) {
  return make<convolution_program>(n, inputs(squared(n)), std::vector<float>(squared(n)), filter_weights());
}
version median_filter(int n) { return make<median_program>(n, input_bytes(squared(n)), input_bytes(squared(n))); }
version mandelbrot(int n) { return make<mandelbrot_program>(n, std::vector<int>(squared(n))); }
version complex_roots(int n) { return make<roots_program>(n, std::vector<double>(squared(n) * 2)); }
version transpose(int n) { return make<transpose_program>(n, inputs(squared(n)), std::vector<float>(squared(n))); }

}  // namespace hpe::bench::pairs::openmp
