#pragma once

/// The reference for transforms: the definition, in long double.

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

namespace hpe::fft::reference {

template <class T>
using vector = std::vector<std::complex<T>>;

/// Returns random complex numbers in a square around 0.
template <class T>
vector<T> random_vector(std::int64_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<T> any(-1, 1);
  vector<T> v(static_cast<std::size_t>(count));
  for (auto& x : v) x = {any(random), any(random)};
  return v;
}

/// Returns exp(2 pi i m / n) for m from 0 to n - 1.
inline vector<long double> roots(std::int64_t n) {
  vector<long double> list;
  for (std::int64_t m = 0; m < n; ++m) {
    const long double angle =
        2 * std::numbers::pi_v<long double> * static_cast<long double>(m) / static_cast<long double>(n);
    list.emplace_back(std::cos(angle), std::sin(angle));
  }
  return list;
}

/// Returns element k of the transform of n elements that are `stride` apart. sign: the sign of the exponent. root:
/// roots(n).
template <class T>
std::complex<long double> element(const std::complex<T>* x, std::int64_t n, std::int64_t stride, std::int64_t k,
                                  int sign, const vector<long double>& root) {
  std::complex<long double> sum = 0;
  std::int64_t m = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto w = root[static_cast<std::size_t>(m)];
    sum += std::complex<long double>(x[i * stride]) * (sign < 0 ? std::conj(w) : w);
    m += k;
    if (m >= n) m -= n;
  }
  return sum;
}

/// Returns the whole transform of `rows` rows of `length` elements, along both axes if there are several rows.
template <class T>
vector<long double> transform(const vector<T>& x, std::int64_t rows, std::int64_t length, int sign) {
  const vector<long double> along = roots(length), down = roots(rows);
  vector<long double> half(x.size()), all(x.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < length; ++k)
      half[static_cast<std::size_t>(r * length + k)] = element(x.data() + r * length, length, 1, k, sign, along);
  if (rows == 1) return half;
  for (std::int64_t c = 0; c < length; ++c)
    for (std::int64_t k = 0; k < rows; ++k)
      all[static_cast<std::size_t>(k * length + c)] = element(half.data() + c, rows, length, k, sign, down);
  return all;
}

template <class T>
long double squares(const vector<T>& x) {
  long double sum = 0;
  for (const auto& v : x) sum += std::norm(std::complex<long double>(v));
  return sum;
}

/// Returns the root mean square of the error, relative to the wanted values, in units of eps * max(1, log2 n); NaN if a
/// result is NaN.
template <class T, class U>
double error_of(const vector<T>& got, const vector<U>& wanted, std::int64_t n) {
  long double wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    wrong += std::norm(std::complex<long double>(got[i]) - std::complex<long double>(wanted[i]));
  const long double unit = std::numeric_limits<T>::epsilon() * std::max(1.0L, std::log2(static_cast<long double>(n)));
  const long double size = squares(wanted);
  return static_cast<double>(std::sqrt(size > 0 ? wrong / size : wrong) / unit);
}

}  // namespace hpe::fft::reference
