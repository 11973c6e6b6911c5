#pragma once

/// Random batches and their scans, computed element by element.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "apps/scan/scan_operation.h"

namespace hpe::scan::testing {

inline unsigned fresh_seed() { return std::random_device{}(); }

template <class T>
std::vector<T> random_values(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  for (T& v : values) {
    if constexpr (std::is_floating_point_v<T>)
      v = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
    else
      v = static_cast<T>(random());
  }
  return values;
}

/// The exact type of sums: integers wrap, floats are added in double or long double.
template <class T>
using accumulator = std::conditional_t<
    std::is_same_v<T, float>, double,
    std::conditional_t<std::is_same_v<T, double>, long double,
                       std::make_unsigned_t<std::conditional_t<std::is_floating_point_v<T>, int, T>>>>;

template <class T>
struct expected {
  std::vector<T> values;
  std::vector<double> tolerance;  ///< of each element; 0 for exact ones
};

template <class T>
expected<T> reference(const std::vector<T>& input, std::size_t length, built_in op, bool inclusive) {
  expected<T> result{std::vector<T>(input.size()), std::vector<double>(input.size())};
  for (std::size_t begin = 0; begin < input.size(); begin += length) {
    accumulator<T> sum = 0;
    double sizes = 0;
    T least = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    T greatest =
        std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
    for (std::size_t i = 0; i < length; ++i) {
      const T value = input[begin + i];
      const auto write = [&] {
        result.values[begin + i] = op == built_in::sum ? static_cast<T>(sum) : (op == built_in::min ? least : greatest);
        if (std::is_floating_point_v<T> && op == built_in::sum)
          result.tolerance[begin + i] =
              static_cast<double>(i + 1) * static_cast<double>(std::numeric_limits<T>::epsilon()) * sizes;
      };
      if (!inclusive) write();
      sum += static_cast<accumulator<T>>(value);
      sizes += std::abs(static_cast<double>(value));
      least = std::min(least, value);
      greatest = std::max(greatest, value);
      if (inclusive) write();
    }
  }
  return result;
}

/// Compares the bits of two values, and so distinguishes -0 from 0, and NaNs by their payloads.
template <class T>
bool same_bits(const T& a, const T& b) {
  using words = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  return std::bit_cast<words>(a) == std::bit_cast<words>(b);
}

/// Returns the index of the first element that differs from the expected element, or the number of elements if none
/// differs.
template <class T>
std::size_t first_difference(const T* found, const expected<T>& wanted) {
  for (std::size_t i = 0; i < wanted.values.size(); ++i) {
    const bool same = same_bits(found[i], wanted.values[i]) || found[i] == wanted.values[i];
    if (!same &&
        !(std::abs(static_cast<double>(found[i]) - static_cast<double>(wanted.values[i])) <= wanted.tolerance[i]))
      return i;
  }
  return wanted.values.size();
}

template <class T>
T poison() {
  T value;
  std::memset(&value, 0xA5, sizeof value);
  return value;
}

template <class T>
bool is_poison(const T& value) {
  return same_bits(value, poison<T>());
}

}  // namespace hpe::scan::testing
