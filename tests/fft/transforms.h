#pragma once

/// Runs plans on fresh memory, after filling the outputs with a poison value.

#include <algorithm>

#include "apps/fft/fft.h"
#include "hpe/hpe.hpp"
#include "tests/fft/reference.h"

namespace hpe::fft {

inline constexpr int forward = -1;
inline constexpr int inverse = 1;

enum class place { out, in };

/// The seed of this run; printed by failures.
inline unsigned fresh_seed() {
  static const unsigned seed = std::random_device{}();
  return seed;
}

template <class T>
reference::vector<T> run(plan<T>& how, const reference::vector<T>& x, int sign, place where) {
  using element = std::complex<T>;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  array<element> data(x.size(), block_distribution());
  std::copy(x.begin(), x.end(), data.begin());
  array<element> apart(where == place::out ? x.size() : 0, block_distribution());
  std::fill(apart.begin(), apart.end(), element(nan, nan));
  const array<element>& result = where == place::out ? apart : data;
  sign == forward ? how.forward(data.data(), result.data()) : how.inverse(data.data(), result.data());
  reference::vector<T> got(result.begin(), result.end());
  if (where == place::out && !std::equal(x.begin(), x.end(), data.begin()))
    got[0] = {nan, nan};  // the input must not change
  return got;
}

}  // namespace hpe::fft
