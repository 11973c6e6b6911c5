// The OpenMP versions of the programs on lists, sorting and numbers.

#include <complex>
#include <numbers>

#include "bench/pairs/openmp_version.h"

namespace hpe::bench::pairs::openmp {

namespace {

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
      const float d1 = (logf(price / strike) + (rate + 0.5F * volatility * volatility) * years) / (volatility * root);
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

}  // namespace

version triad(int n) {
  return make<triad_program>(n, inputs(size_of(n)), inputs(size_of(n)), std::vector<float>(size_of(n)));
}
version reduction(int n) { return make<reduction_program>(n, inputs(size_of(n)), std::vector<float>(1)); }
version scan(int n) {
  std::vector<int> in(size_of(n));
  for (int i = 0; i < n; ++i) in[size_of(i)] = static_cast<int>(input(static_cast<std::uint32_t>(i)) * 100);
  return make<scan_program>(n, in, std::vector<int>(size_of(n)), std::vector<int>(size_of(n + 255) / 256));
}
version fft(int n) {
  return make<fft_program>(n, inputs(size_of(n) * fft_points * 2), std::vector<float>(size_of(n) * fft_points * 2));
}
version n_body(int n) { return make<n_body_program>(n, inputs(size_of(n) * 4), std::vector<float>(size_of(n) * 3)); }
version monte_carlo(int n) { return make<monte_carlo_program>(n, std::vector<float>(size_of(n))); }
version bitonic_sort(int n) { return make<bitonic_program>(n, input_keys(size_of(n)), std::vector<unsigned>()); }
version radix_sort(int n) {
  return make<radix_program>(n, input_keys(size_of(n)), std::vector<unsigned>(), std::vector<unsigned>(size_of(n)),
                             std::vector<unsigned>(size_of(n + sort_tile - 1) / sort_tile * 16));
}
version histogram(int n) { return make<histogram_program>(n, input_bytes(size_of(n)), std::vector<unsigned>(256)); }
version black_scholes(int n) {
  return make<black_scholes_program>(n, inputs(size_of(n) * 3), std::vector<float>(size_of(n) * 2));
}
version k_means(int n) {
  return make<k_means_program>(n, inputs(size_of(n) * 4), inputs(4 * clusters), std::vector<int>(size_of(n)));
}

}  // namespace hpe::bench::pairs::openmp
