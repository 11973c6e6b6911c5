#pragma once

#include <stdint.h>

#include "kernels/sort.h"

/// A program's own element type and order: by absolute value, the largest value first.
struct measured {
  int32_t value;
  uint32_t place;
  float other;
};

struct by_size_descending {
  HPE_SORT_BOTH bool operator()(const measured& a, const measured& b) const { return size(a.value) > size(b.value); }
  static HPE_SORT_BOTH uint32_t size(int32_t v) { return v < 0 ? 0U - uint32_t(v) : uint32_t(v); }
};

namespace hpe::sort {
struct local_sort;
}
/// Returns the local sort of `measured` elements on GPUs; null in builds without a CUDA toolkit.
const hpe::sort::local_sort* descending_on_gpus();
