#pragma once

/// The choice of the form of a transform and of the factors of its length. Pure arithmetic.

#include <cstdint>

#include "apps/fft/fft.h"

namespace hpe::fft {

struct choice {
  form how = form::local;
  int devices = 1;         ///< how many take part
  std::int64_t first = 0;  ///< form transpose: the length is first * second, first <= second
  std::int64_t second = 0;
  std::int64_t longer = 0;  ///< form convolution: the length of the convolution
};

/// The properties of the machine on which the choice depends.
struct machine {
  int devices;
  bool soft;
  std::int64_t element_bytes;
  /// GPUs, in bytes per second: what one device reads from another, and what a copy within a device reads and writes
  /// together. 0: not known; then devices share what is large enough.
  double link = 0;
  double memory = 0;
};

/// Throws hpe::error (HPE_ERROR_INVALID_ARGUMENT) if the settings are not possible for the problem.
[[nodiscard]] choice choose(const problem& what, const settings& wish, const machine& on);

/// The two factors of n that are nearest to each other, the smaller one first.
struct factors {
  std::int64_t first, second;
};
[[nodiscard]] factors nearest_factors(std::int64_t n);
/// Factors that are multiples of four, for which libraries have their fastest transforms, and nearly as near to each
/// other; the nearest factors if there are none.
[[nodiscard]] factors convenient_factors(std::int64_t n);

/// The least number of the form 2^a 3^b 5^c, a >= 2, that is not less than n.
[[nodiscard]] std::int64_t convenient_length(std::int64_t n);

/// The greatest power of two that divides n and is at most `most`.
[[nodiscard]] int exchanging(std::int64_t n, int most);

[[nodiscard]] const char* name_of(form how);

}  // namespace hpe::fft
