// The kernels of the examples, for soft devices. A launch has tiles, as a CUDA launch has
// blocks. Several threads of a device call the kernel, each for a range of the tiles.

#include "kernels.h"

namespace {

struct range {
  uint64_t begin;
  uint64_t end;
};

/// Returns the range of the `count` elements that belongs to these tiles of a
/// one-dimensional grid.
range elements_of(const hpeTiles& tiles, uint64_t count) {
  return {count * tiles.begin / tiles.grid[0], count * tiles.end / tiles.grid[0]};
}

}  // namespace

HPE_HOST_KERNEL(fill, fill_parameters) {
  const range mine = elements_of(*tiles, parameters->count);
  for (uint64_t i = mine.begin; i < mine.end; ++i)
    parameters->data[i] = parameters->first + static_cast<float>(i);
}

HPE_HOST_KERNEL(saxpy, saxpy_parameters) {
  const range mine = elements_of(*tiles, parameters->count);
  for (uint64_t i = mine.begin; i < mine.end; ++i)
    parameters->y[i] += parameters->a * parameters->x[i];
}

HPE_HOST_KERNEL(heat_step, heat_parameters) {
  const range mine = elements_of(*tiles, parameters->count);
  for (uint64_t i = mine.begin + 1; i < mine.end + 1; ++i)
    parameters->next[i] = heat(parameters->now, i);
}
