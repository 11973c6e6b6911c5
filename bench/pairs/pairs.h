#pragma once

/// Programs of the kinds found in public benchmark suites, each written twice: in CUDA and in OpenMP. Both versions
/// compute the same problem in the usual style of their language.

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace hpe::bench::pairs {

/// A version of a program, whose input is already in memory.
struct version {
  std::function<void()> run;                    ///< the timed part, repeatable; returns when the result is complete
  std::function<std::vector<double>()> result;  ///< returns the result of the last run
};

/// Creates one version of a program; `n` is the size of the problem.
using maker = version (*)(int n);

struct pair {
  const char* name;
  maker cuda, openmp;
  int size;          ///< problem size for measurements
  int small;         ///< problem size for tests
  double tolerance;  ///< the largest allowed difference of the results, as a relative root mean square
};

/// Returns all pairs of programs, in the order of the table.
[[nodiscard]] const std::vector<pair>& all();

/// Returns element i of a program's input: a number in [0, 1), from a hash of i.
[[nodiscard]] inline float input(std::uint32_t i) {
  i = (i ^ 61U) ^ (i >> 16U);
  i *= 9U;
  i ^= i >> 4U;
  i *= 0x27d4eb2dU;
  i ^= i >> 15U;
  return static_cast<float>(i >> 8U) * 0x1p-24F;
}

[[nodiscard]] inline std::vector<float> inputs(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = input(static_cast<std::uint32_t>(i));
  return values;
}

[[nodiscard]] inline std::vector<unsigned char> input_bytes(std::size_t count) {
  std::vector<unsigned char> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<unsigned char>(input(static_cast<std::uint32_t>(i)) * 256);
  return values;
}

/// Returns `count` keys of 24 bits.
[[nodiscard]] inline std::vector<unsigned> input_keys(std::size_t count) {
  std::vector<unsigned> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<unsigned>(input(static_cast<std::uint32_t>(i)) * 0x1p24F);
  return values;
}

/// A sparse matrix in compressed rows (CSR). Each row has 4 to 28 elements, in a band around the diagonal and in random
/// columns.
struct sparse_matrix {
  std::vector<int> first, column;
  std::vector<double> value;
};

[[nodiscard]] inline sparse_matrix make_sparse(int rows) {
  sparse_matrix m;
  m.first.push_back(0);
  for (int r = 0; r < rows; ++r) {
    const auto seed = static_cast<std::uint32_t>(r);
    const int count = 4 + static_cast<int>(input(seed) * 25);
    for (int n = 0; n < count; ++n) {
      const int near = r + n - count / 2;
      const auto far = static_cast<int>(input(seed * 31 + static_cast<std::uint32_t>(n)) * static_cast<float>(rows));
      m.column.push_back(n % 2 == 0 ? (near + rows) % rows : far);
      m.value.push_back(static_cast<double>(input(seed + 17 * static_cast<std::uint32_t>(n))));
    }
    m.first.push_back(static_cast<int>(m.column.size()));
  }
  return m;
}

constexpr int jacobi_steps = 10;
constexpr int stencil_steps = 4;
constexpr int fft_points = 1024;
constexpr int sort_tile = 1024;
constexpr int clusters = 16;
constexpr int filter_radius = 3;
constexpr int most_iterations = 256;
constexpr int paths_per_thread = 64;

/// Returns the matrix of a linear system of n unknowns. Each diagonal element is larger than the sum of the other
/// elements of its row.
[[nodiscard]] inline std::vector<float> system_matrix(int n) {
  const auto rows = static_cast<std::size_t>(n);
  std::vector<float> a = inputs(rows * rows);
  for (std::size_t r = 0; r < rows; ++r) a[r * rows + r] = static_cast<float>(n);
  return a;
}

/// Returns the (2 r + 1)^2 weights of the image filter of radius r = filter_radius.
[[nodiscard]] inline std::vector<float> filter_weights() {
  constexpr int width = 2 * filter_radius + 1;
  std::vector<float> weights(static_cast<std::size_t>(width * width));
  for (int y = 0; y < width; ++y)
    for (int x = 0; x < width; ++x)
      weights[static_cast<std::size_t>(y * width + x)] =
          1.0F / static_cast<float>(20 + (x - filter_radius) * (x - filter_radius) +
                                    (y - filter_radius) * (y - filter_radius));
  return weights;
}

// Declares the CUDA version (cuda_*.cu) and the OpenMP version (openmp_*.cpp) of a program.
#define HPE_PAIR(name)               \
  namespace cuda {                   \
  [[nodiscard]] version name(int n); \
  }                                  \
  namespace openmp {                 \
  [[nodiscard]] version name(int n); \
  }
HPE_PAIR(triad)
HPE_PAIR(stencil_2d)
HPE_PAIR(stencil_3d)
HPE_PAIR(jacobi)
HPE_PAIR(linear_system)
HPE_PAIR(reduction)
HPE_PAIR(scan)
HPE_PAIR(fft)
HPE_PAIR(n_body)
HPE_PAIR(monte_carlo)
HPE_PAIR(bitonic_sort)
HPE_PAIR(radix_sort)
HPE_PAIR(sparse_product)
HPE_PAIR(product)
HPE_PAIR(tiled_product)
HPE_PAIR(convolution)
HPE_PAIR(median_filter)
HPE_PAIR(mandelbrot)
HPE_PAIR(complex_roots)
HPE_PAIR(histogram)
HPE_PAIR(transpose)
HPE_PAIR(black_scholes)
HPE_PAIR(k_means)
#undef HPE_PAIR

}  // namespace hpe::bench::pairs
