// The OpenMP versions.

#include <algorithm>
#include <complex>
#include <memory>
#include <numbers>

#include "bench/pairs/pairs.h"

namespace hpe::bench::pairs::openmp {

namespace {

template <class T>
std::vector<double> as_doubles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

// A version whose arrays live in an object of type T, which has run() and the vector `output`.
template <class T>
version of(std::shared_ptr<T> program) {
  return {[program] { program->run(); }, [program] { return as_doubles(program->output); }};
}

std::size_t squared(int n) { return static_cast<std::size_t>(n) * static_cast<std::size_t>(n); }

std::vector<std::uint8_t> bytes(std::size_t n) {
  std::vector<std::uint8_t> values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = static_cast<std::uint8_t>(input(static_cast<std::uint32_t>(i)) * 256);
  return values;
}

std::vector<unsigned> keys(int n) {
  std::vector<unsigned> values(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<unsigned>(input(static_cast<std::uint32_t>(i)) * 0x1p24F);
  return values;
}

struct triad_program {
  int n;
  std::vector<float> a, b, output;
  void run() {
    const float *x = a.data(), *y = b.data();
    float* z = output.data();
#pragma omp parallel for
    for (int i = 0; i < n; ++i) z[i] = x[i] + 1.5F * y[i];
  }
};

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
            out[i] = 0.4F * in[i] +
                     0.1F * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + in[i - plane] + in[i + plane]);
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

struct reduction_program {
  int n;
  std::vector<float> in, output;
  void run() {
    const float* x = in.data();
    float sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; ++i) sum += x[i];
    output[0] = sum;
  }
};

// Prefix sums in parts of 256, then of the parts' totals.
struct scan_program {
  int n;
  std::vector<int> in, output, totals;
  void run() {
    const int parts = static_cast<int>(totals.size());
    const int* x = in.data();
    int *y = output.data(), *t = totals.data();
#pragma omp parallel for
    for (int p = 0; p < parts; ++p) {
      int sum = 0;
      for (int i = p * 256; i < std::min(n, (p + 1) * 256); ++i) {
        sum += x[i];
        y[i] = sum;
      }
      t[p] = sum;
    }
    for (int p = 1; p < parts; ++p) t[p] += t[p - 1];
#pragma omp parallel for
    for (int p = 1; p < parts; ++p)
      for (int i = p * 256; i < std::min(n, (p + 1) * 256); ++i) y[i] += t[p - 1];
  }
};

struct fft_program {
  int n;
  std::vector<float> in, output;
  void run() {
    using complex = std::complex<float>;
    const auto* from = reinterpret_cast<const complex*>(in.data());
    auto* to = reinterpret_cast<complex*>(output.data());
#pragma omp parallel for
    for (int f = 0; f < n; ++f) {
      complex data[2][fft_points];
      for (int i = 0; i < fft_points; ++i) data[0][i] = from[f * fft_points + i];
      int now = 0;
      for (int size = 1; size < fft_points; size *= 2) {
        for (int b = 0; b < fft_points / 2; ++b) {
          const int k = b & (size - 1);
          const float angle = -std::numbers::pi_v<float> * static_cast<float>(k) / static_cast<float>(size);
          const float sine = sinf(angle), cosine = cosf(angle);
          const complex u = data[now][b], v = data[now][b + fft_points / 2];
          const complex w(v.real() * cosine - v.imag() * sine, v.real() * sine + v.imag() * cosine);
          const int at = 2 * (b - k) + k;
          data[1 - now][at] = u + w;
          data[1 - now][at + size] = u - w;
        }
        now = 1 - now;
      }
      for (int i = 0; i < fft_points; ++i) to[f * fft_points + i] = data[now][i];
    }
  }
};

struct n_body_program {
  int n;
  std::vector<float> bodies, output;
  void run() {
    const float* b = bodies.data();
    float* force = output.data();
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
      float x = 0, y = 0, z = 0;
      for (int j = 0; j < n; ++j) {
        const float dx = b[4 * j] - b[4 * i], dy = b[4 * j + 1] - b[4 * i + 1], dz = b[4 * j + 2] - b[4 * i + 2];
        const float inverse = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3F);
        const float s = b[4 * j + 3] * inverse * inverse * inverse;
        x += dx * s;
        y += dy * s;
        z += dz * s;
      }
      force[3 * i] = x;
      force[3 * i + 1] = y;
      force[3 * i + 2] = z;
    }
  }
};

struct monte_carlo_program {
  int n;
  std::vector<float> output;
  void run() {
    float* payoff = output.data();
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
      unsigned state = 1234567U + 7919U * static_cast<unsigned>(i);
      float sum = 0;
      for (int p = 0; p < paths_per_thread; ++p) {
        float price = 100;
        for (int step = 0; step < 4; ++step) {
          float uniform = 0;
          for (int k = 0; k < 4; ++k) {
            state ^= state << 13U;
            state ^= state >> 17U;
            state ^= state << 5U;
            uniform += static_cast<float>(state >> 8U) * 0x1p-24F;
          }
          price *= expf(0.01F + 0.2F * (uniform - 2.0F));
        }
        sum += fmaxf(price - 100.0F, 0.0F);
      }
      payoff[i] = sum / paths_per_thread;
    }
  }
};

struct bitonic_program {
  int n;
  std::vector<unsigned> start, output;
  void run() {
    output = start;
    unsigned* data = output.data();
    for (int k = 2; k <= n; k *= 2)
      for (int j = k / 2; j > 0; j /= 2)
#pragma omp parallel for
        for (int i = 0; i < n; ++i) {
          const int other = i ^ j;
          if (other <= i) continue;
          const unsigned a = data[i], b = data[other];
          if ((a > b) == ((i & k) == 0)) {
            data[i] = b;
            data[other] = a;
          }
        }
  }
};

// Four bits at a time: counts of each tile, their prefix sums, and a stable scatter.
struct radix_program {
  int n;
  std::vector<unsigned> start, output, other, counts;
  void run() {
    output = start;
    const int tiles = (n + sort_tile - 1) / sort_tile;
    unsigned* c = counts.data();
    for (int pass = 0; pass < 6; ++pass) {
      const int shift = 4 * pass;
      const unsigned* from = pass % 2 != 0 ? other.data() : output.data();
      unsigned* to = pass % 2 != 0 ? output.data() : other.data();
#pragma omp parallel for
      for (int tile = 0; tile < tiles; ++tile) {
        unsigned bins[16] = {};
        for (int i = tile * sort_tile; i < std::min(n, (tile + 1) * sort_tile); ++i) ++bins[from[i] >> shift & 15U];
        for (int d = 0; d < 16; ++d) c[d * tiles + tile] = bins[d];
      }
      unsigned sum = 0;
      for (int i = 0; i < 16 * tiles; ++i) {
        const unsigned count = c[i];
        c[i] = sum;
        sum += count;
      }
#pragma omp parallel for
      for (int tile = 0; tile < tiles; ++tile) {
        unsigned place[16];
        for (int d = 0; d < 16; ++d) place[d] = c[d * tiles + tile];
        for (int i = tile * sort_tile; i < std::min(n, (tile + 1) * sort_tile); ++i)
          to[place[from[i] >> shift & 15U]++] = from[i];
      }
    }
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

// In tiles of 16 rows, 64 columns and 64 products.
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

struct histogram_program {
  int n;
  std::vector<std::uint8_t> in;
  std::vector<unsigned> output;
  void run() {
    unsigned bins[256] = {};
    const std::uint8_t* x = in.data();
#pragma omp parallel for reduction(+ : bins)
    for (int i = 0; i < n; ++i) ++bins[x[i]];
    std::copy(std::begin(bins), std::end(bins), output.begin());
  }
};

// In tiles of 32 x 32, for the caches.
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

float normal_distribution(float d) {
  const float k = 1.0F / (1.0F + 0.2316419F * fabsf(d));
  const float tail =
      0.39894228F * expf(-0.5F * d * d) *
      (k * (0.31938153F + k * (-0.356563782F + k * (1.781477937F + k * (-1.821255978F + k * 1.330274429F)))));
  return d > 0 ? 1.0F - tail : tail;
}

struct black_scholes_program {
  int n;
  std::vector<float> random, output;
  void run() {
    const float* from = random.data();
    float *call = output.data(), *put = call + n;
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
      const float price = 5 + 25 * from[i], strike = 1 + 99 * from[n + i], years = 0.25F + 9.75F * from[2 * n + i];
      const float rate = 0.02F, volatility = 0.3F;
      const float root = sqrtf(years);
      const float d1 =
          (logf(price / strike) + (rate + 0.5F * volatility * volatility) * years) / (volatility * root);
      const float d2 = d1 - volatility * root;
      const float n1 = normal_distribution(d1), n2 = normal_distribution(d2), discounted = strike * expf(-rate * years);
      call[i] = price * n1 - discounted * n2;
      put[i] = discounted * (1.0F - n2) - price * (1.0F - n1);
    }
  }
};

struct k_means_program {
  int n;
  std::vector<float> points, centres;
  std::vector<int> output;
  void run() {
    const float *p = points.data(), *q = centres.data();
    int* nearest = output.data();
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
      float best = 1e30F;
      int which = 0;
      for (int c = 0; c < clusters; ++c) {
        float d = 0;
        for (int k = 0; k < 4; ++k) d += (p[4 * i + k] - q[4 * c + k]) * (p[4 * i + k] - q[4 * c + k]);
        if (d < best) {
          best = d;
          which = c;
        }
      }
      nearest[i] = which;
    }
  }
};

template <class T, class... Members>
version make(Members&&... members) {
  return of(std::make_shared<T>(T{std::forward<Members>(members)...}));
}

}  // namespace

#define HPE_SIZE(n) static_cast<std::size_t>(n)

version triad(int n) {
  return make<triad_program>(n, inputs(HPE_SIZE(n)), inputs(HPE_SIZE(n)), std::vector<float>(HPE_SIZE(n)));
}
version stencil_2d(int n) { return make<stencil_2d_program>(n, inputs(squared(n)), inputs(squared(n))); }
version stencil_3d(int n) {
  return make<stencil_3d_program>(n, inputs(squared(n) * HPE_SIZE(n)), inputs(squared(n) * HPE_SIZE(n)));
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
version reduction(int n) { return make<reduction_program>(n, inputs(HPE_SIZE(n)), std::vector<float>(1)); }
version scan(int n) {
  std::vector<int> in(HPE_SIZE(n));
  for (int i = 0; i < n; ++i)
    in[HPE_SIZE(i)] = static_cast<int>(input(static_cast<std::uint32_t>(i)) * 100);
  return make<scan_program>(n, in, std::vector<int>(HPE_SIZE(n)), std::vector<int>(HPE_SIZE(n + 255) / 256));
}
version fft(int n) {
  return make<fft_program>(n, inputs(HPE_SIZE(n) * fft_points * 2), std::vector<float>(HPE_SIZE(n) * fft_points * 2));
}
version n_body(int n) { return make<n_body_program>(n, inputs(HPE_SIZE(n) * 4), std::vector<float>(HPE_SIZE(n) * 3)); }
version monte_carlo(int n) { return make<monte_carlo_program>(n, std::vector<float>(HPE_SIZE(n))); }
version bitonic_sort(int n) { return make<bitonic_program>(n, keys(n), std::vector<unsigned>()); }
version radix_sort(int n) {
  return make<radix_program>(n, keys(n), std::vector<unsigned>(), std::vector<unsigned>(HPE_SIZE(n)),
                             std::vector<unsigned>(HPE_SIZE(n + sort_tile - 1) / sort_tile * 16));
}
version sparse_product(int n) {
  const std::vector<float> x = inputs(HPE_SIZE(n));
  return make<sparse_program>(n, make_sparse(n), as_doubles(x), std::vector<double>(HPE_SIZE(n)));
}
version product(int n) {
  return make<product_program>(n, inputs(squared(n)), inputs(squared(n)), std::vector<float>(squared(n)));
}
version tiled_product(int n) {
  return make<tiled_program>(n, inputs(squared(n)), inputs(squared(n)), std::vector<float>(squared(n)));
}
version convolution(int n) {
  return make<convolution_program>(n, inputs(squared(n)), std::vector<float>(squared(n)), filter_weights());
}
version median_filter(int n) { return make<median_program>(n, bytes(squared(n)), bytes(squared(n))); }
version mandelbrot(int n) { return make<mandelbrot_program>(n, std::vector<int>(squared(n))); }
version complex_roots(int n) { return make<roots_program>(n, std::vector<double>(squared(n) * 2)); }
version histogram(int n) { return make<histogram_program>(n, bytes(HPE_SIZE(n)), std::vector<unsigned>(256)); }
version transpose(int n) { return make<transpose_program>(n, inputs(squared(n)), std::vector<float>(squared(n))); }
version black_scholes(int n) {
  return make<black_scholes_program>(n, inputs(HPE_SIZE(n) * 3), std::vector<float>(HPE_SIZE(n) * 2));
}
version k_means(int n) {
  return make<k_means_program>(n, inputs(HPE_SIZE(n) * 4), inputs(4 * clusters), std::vector<int>(HPE_SIZE(n)));
}

#undef HPE_SIZE

}  // namespace hpe::bench::pairs::openmp
