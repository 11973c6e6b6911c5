#include "scale_kernels.h"

HPE_HOST_KERNEL(scale, scale_parameters) {
  const uint64_t tiles_in_all = uint64_t{tiles->grid[0]} * tiles->grid[1] * tiles->grid[2];
  const uint64_t first = parameters->count * tiles->begin / tiles_in_all;
  const uint64_t last = parameters->count * tiles->end / tiles_in_all;
  for (uint64_t i = first; i < last; ++i) parameters->data[i] *= parameters->factor;
}
