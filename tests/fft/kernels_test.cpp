// Tests the kernels alone, without a runtime: compares every variant with the definitions in kernels/fft_parameters.h,
// for several divisions into launches.

#include <gtest/gtest.h>

#include <algorithm>

#include "hpe/kernel.h"
#include "kernels/fft_parameters.h"
#include "kernels/host/declared_variants.h"
#include "tests/fft/reference.h"

extern "C" {
#define HPE_KERNEL(name, ...) HPE_DECLARE_VARIANTS(name)
#include "kernels/fft/kernels.def"
void fft_chirp_f32(const void* parameters, const hpeTiles* tiles);
void fft_chirp_f64(const void* parameters, const hpeTiles* tiles);
}

namespace hpe::kernels {
namespace {

namespace reference = hpe::fft::reference;

/// Returns the variants of a kernel that this machine can run.
std::vector<hpeHostKernel> usable(hpeHostKernel chosen, hpeHostKernel baseline, hpeHostKernel avx2,
                                  hpeHostKernel avx512) {
  std::vector<hpeHostKernel> all{chosen, baseline};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    all.push_back(avx512);
  return all;
}
#define VARIANTS(name)                                                                                              \
  (sizeof(TypeParam) == sizeof(float) ? usable(name##_f32, name##_f32_baseline, name##_f32_avx2, name##_f32_avx512) \
                                      : usable(name##_f64, name##_f64_baseline, name##_f64_avx2, name##_f64_avx512))

/// Runs all tiles, a few at a time, from the last tile to the first.
template <class Parameters>
void launch(hpeHostKernel kernel, const Parameters& p, std::uint64_t tiles) {
  constexpr std::uint64_t share = 3;
  for (std::uint64_t end = tiles; end > 0;) {
    const std::uint64_t begin = end > share ? end - share : 0;
    const hpeTiles some{begin, end, {static_cast<std::uint32_t>(tiles), 1, 1}};
    kernel(&p, &some);
    end = begin;
  }
}

std::uint64_t tiles_of(std::int64_t elements) { return static_cast<std::uint64_t>(parts_of(elements, tile_elements)); }

template <class T>
complex_number<T>* raw(reference::vector<T>& v) {
  return reinterpret_cast<complex_number<T>*>(v.data());
}

template <class T>
reference::vector<T> poison(std::int64_t count) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  return reference::vector<T>(static_cast<std::size_t>(count), {nan, nan});
}

/// Returns the root mean square error in units of eps.
template <class T>
double units(const reference::vector<T>& got, const reference::vector<long double>& wanted) {
  return reference::error_of(got, wanted, 2);
}

template <class T>
class kernels : public ::testing::Test {};
using precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(kernels, precisions);

TYPED_TEST(kernels, transpose) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {5, 3}, {32, 32}, {33, 65}, {100, 7}, {7, 100}, {129, 200}})
    for (const std::int64_t root : {std::int64_t{0}, std::int64_t{rows} * columns})
      for (const int sign : {-1, 1})
        for (const int spread : {1, 3, 8}) {
          auto source = reference::random_vector<TypeParam>(rows * columns, 7);
          const auto w = reference::roots(rows * columns);
          reference::vector<long double> wanted;
          for (int r = 0; r < rows; ++r)
            for (int c = 0; c < columns; ++c) {
              const std::complex<long double> x =
                  source[static_cast<std::size_t>(c) * static_cast<std::size_t>(rows) + static_cast<std::size_t>(r)];
              const auto factor = w[static_cast<std::size_t>(r) * static_cast<std::size_t>(c)];
              wanted.push_back(root == 0 ? x : x * (sign < 0 ? std::conj(factor) : factor));
            }
          for (const hpeHostKernel kernel : VARIANTS(fft_transpose)) {
            auto target = poison<TypeParam>(rows * columns);
            const std::int64_t half = rows / 2;
            for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, half}, {half, rows}}) {
              const fft_transpose<TypeParam> p{
                  raw(source), raw(target) + begin * columns, rows, columns, begin, end, root, sign, spread, spread / 2,
                  columns};
              launch(kernel, p, static_cast<std::uint64_t>(p.tiles()));
            }
            ASSERT_LT(units(target, wanted), 1) << rows << " x " << columns << ", root " << root;
          }
        }
}

TYPED_TEST(kernels, twiddle) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 5}, {17, 64}, {40, 129}}) {
    const auto given = reference::random_vector<TypeParam>(rows * columns, 8);
    const auto w = reference::roots(rows * columns);
    reference::vector<long double> wanted;
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        wanted.push_back(
            std::complex<long double>(
                given[static_cast<std::size_t>(r) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(c)]) *
            std::conj(w[static_cast<std::size_t>(r) * static_cast<std::size_t>(c)]));
    for (const hpeHostKernel kernel : VARIANTS(fft_twiddle)) {
      auto data = given;
      const fft_twiddle<TypeParam> p{raw(data), columns, 0, rows, rows * columns, -1};
      launch(kernel, p, static_cast<std::uint64_t>(rows));
      ASSERT_LT(units(data, wanted), 1) << rows << " x " << columns;
    }
  }
}

TYPED_TEST(kernels, butterfly) {
  const std::int64_t part = 9001, root = 4 * part, offset = part;
  auto a = reference::random_vector<TypeParam>(part, 9), b = reference::random_vector<TypeParam>(part, 10);
  const auto w = reference::roots(root);
  reference::vector<long double> low, high;
  for (std::int64_t j = 0; j < part; ++j) {
    const auto i = static_cast<std::size_t>(j);
    const std::complex<long double> x = a[i], y = b[i];
    low.push_back(x + y);
    high.push_back((x - y) * w[static_cast<std::size_t>(offset + j)]);
  }
  for (const hpeHostKernel kernel : VARIANTS(fft_butterfly))
    for (const bool in_place : {false, true}) {
      auto lower = in_place ? a : poison<TypeParam>(part), upper = in_place ? b : lower;
      for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 4500}, {4500, part}}) {
        const fft_butterfly<TypeParam> p{in_place ? raw(lower) : raw(a),
                                         in_place ? raw(upper) : raw(b),
                                         raw(lower),
                                         raw(upper),
                                         begin,
                                         end,
                                         offset,
                                         root,
                                         1};
        launch(kernel, p, tiles_of(end - begin));
      }
      EXPECT_LT(units(lower, low), 1);
      EXPECT_LT(units(upper, high), 1);
    }
}

TYPED_TEST(kernels, interleave) {
  for (const int bits : {0, 1, 2, 3}) {
    const std::int64_t length = 3001, count = length << bits;
    auto source = reference::random_vector<TypeParam>(count, 11);
    reference::vector<TypeParam> wanted(source.size());
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t row = 0;
      for (int b = 0; b < bits; ++b) row = 2 * row + (i >> b & 1);
      wanted[static_cast<std::size_t>(i)] = source[static_cast<std::size_t>(row * length + (i >> bits))];
    }
    for (const hpeHostKernel kernel : VARIANTS(fft_interleave)) {
      auto target = poison<TypeParam>(count);
      for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 1234}, {1234, count}})
        launch(kernel, fft_interleave<TypeParam>{raw(source), raw(target), length, begin, end, bits},
               tiles_of(end - begin));
      EXPECT_EQ(target, wanted) << bits;
    }
  }
}

TYPED_TEST(kernels, multiply) {
  const std::int64_t count = 10000, given = 7001;
  auto left = reference::random_vector<TypeParam>(given, 12), right = reference::random_vector<TypeParam>(given, 13);
  for (const int conjugate : {0, 1}) {
    reference::vector<long double> wanted(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < static_cast<std::size_t>(given); ++i) {
      const std::complex<long double> x = left[i], y = right[i];
      wanted[i] = 0.25L * x * (conjugate != 0 ? std::conj(y) : y);
    }
    for (const hpeHostKernel kernel : VARIANTS(fft_multiply)) {
      auto target = poison<TypeParam>(count);
      for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 100}, {100, 9000}, {9000, count}})
        launch(
            kernel,
            fft_multiply<TypeParam>{raw(target), raw(left), raw(right), begin, end, given, TypeParam(0.25), conjugate},
            tiles_of(end - begin));
      EXPECT_LT(units(target, wanted), 1);
    }
  }
}

TYPED_TEST(kernels, chirp) {
  const std::int64_t length = 5003;
  for (const std::int64_t period : {std::int64_t{0}, std::int64_t{12000}}) {
    const std::int64_t count = period == 0 ? length : period;
    const auto w = reference::roots(2 * length);
    reference::vector<long double> wanted;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t j = period == 0 ? i : std::min(i, period - i);
      wanted.push_back(j < length ? w[static_cast<std::size_t>(j * j % (2 * length))] : 0);
    }
    auto target = poison<TypeParam>(count);
    const fft_chirp<TypeParam> p{raw(target), length, period, 0, count, 1};
    launch(sizeof(TypeParam) == sizeof(float) ? fft_chirp_f32 : fft_chirp_f64, p, tiles_of(count));
    EXPECT_LT(units(target, wanted), 1);
  }
}

}  // namespace
}  // namespace hpe::kernels
