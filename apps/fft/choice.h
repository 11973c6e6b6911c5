#pragma once

/// Which form a transform takes, and into which factors a length falls. Pure arithmetic.

#include <cstdint>

#include "apps/fft/fft.h"

namespace hpe::fft {

struct choice {
  form how = form::local;
  int devices = 1;         ///< that take part
  std::int64_t first = 0;  ///< form transpose: the length is first * second, first <= second
  std::int64_t second = 0;
  std::int64_t longer = 0;  ///< form convolution: the length of the convolution
};

/// What the choice depends on beside the problem.
struct machine {
  int devices;
  bool soft;
  std::int64_t element_bytes;
};

/// Throws hpe::error (HPE_ERROR_INVALID_ARGUMENT) if the wish cannot be fulfilled.
[[nodiscard]] choice choose(const problem& what, const settings& wish, const machine& on);

/// The factors of n that are nearest to each other, the lesser one first.
struct factors {
  std::int64_t first, second;
};
[[nodiscard]] factors nearest_factors(std::int64_t n);
/// Factors nearly as near to each other that are multiples of four, for which libraries have their best transforms;
/// the nearest if there are none.
[[nodiscard]] factors convenient_factors(std::int64_t n);

/// The least number of the form 2^a 3^b 5^c, a >= 2, that is not less than n.
[[nodiscard]] std::int64_t convenient_length(std::int64_t n);

/// The greatest power of two that divides n and is at most `most`.
[[nodiscard]] int exchanging(std::int64_t n, int most);

[[nodiscard]] const char* name_of(form how);

}  // namespace hpe::fft
