#pragma once

/// Chooses the form of a transform and the factors of its length. These functions only compute; they use no device.

#include <cstdint>

#include "apps/fft/fft.h"

namespace hpe::fft {

struct choice {
  form how = form::local;
  int devices = 1;         ///< number of devices that take part
  std::int64_t first = 0;  ///< form transpose: the length is first * second, first <= second
  std::int64_t second = 0;
  std::int64_t longer = 0;  ///< form convolution: the length of the convolution
};

/// The properties of the machine that determine the choice.
struct machine {
  int devices;
  bool soft;
  std::int64_t element_bytes;
  /// Rates of GPUs in bytes per second. link: reads from another device; memory: copies within a device, counting the
  /// bytes read and the bytes written. If a rate is 0 (not known), several devices share every transform that is large
  /// enough.
  double link = 0;
  double memory = 0;
};

/// Throws hpe::error (HPE_ERROR_INVALID_ARGUMENT) if the settings are not possible for the problem.
[[nodiscard]] choice choose(const problem& what, const settings& wish, const machine& on);

/// Two factors of n, the smaller one first. nearest_factors returns the two factors that differ least.
struct factors {
  std::int64_t first, second;
};
[[nodiscard]] factors nearest_factors(std::int64_t n);
/// Returns two factors that are multiples of four, because libraries transform those lengths fastest. If n has no such
/// factors, or if the larger of them is more than twice the larger nearest factor, returns the nearest factors.
[[nodiscard]] factors convenient_factors(std::int64_t n);

/// Returns the least number of the form 2^a 3^b 5^c, a >= 2, that is not less than n.
[[nodiscard]] std::int64_t convenient_length(std::int64_t n);

/// Returns the greatest power of two that divides n and is at most `most`: the number of devices for form exchange.
[[nodiscard]] int exchanging(std::int64_t n, int most);

[[nodiscard]] const char* name_of(form how);

}  // namespace hpe::fft
