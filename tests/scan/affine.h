#pragma once

#include "kernels/scan_operators.h"

/// x -> factor * x + offset, modulo 2^32.
struct affine {
  uint32_t factor, offset;
};

/// Composes two functions, which is associative, but not commutative.
struct compose {
  static constexpr bool commutative = false;
  HPE_SCAN_BOTH affine identity() const { return {1, 0}; }
  HPE_SCAN_BOTH affine operator()(affine earlier, affine later) const {
    return {later.factor * earlier.factor, later.factor * earlier.offset + later.offset};
  }
};
