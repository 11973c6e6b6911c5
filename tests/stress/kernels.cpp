#include "tests/stress/kernels.h"

#include <unistd.h>

#include "hpe/kernel.h"
#include "tests/core/tiles.h"

namespace {

void sleep_for(std::uint32_t microseconds) {
  if (microseconds != 0) ::usleep(microseconds);
}

}  // namespace

HPE_HOST_KERNEL(pattern, pattern_parameters) {
  sleep_for(parameters->delay);
  const part mine = part_of(tiles, parameters->count);
  for (std::uint64_t i = mine.begin; i < mine.end; ++i) parameters->data[i] = pattern_at(parameters->seed, i);
}

HPE_HOST_KERNEL(add_bytes, add_bytes_parameters) {
  sleep_for(parameters->delay);
  const part mine = part_of(tiles, parameters->count);
  for (std::uint64_t i = mine.begin; i < mine.end; ++i)
    parameters->data[i] = static_cast<std::uint8_t>(parameters->data[i] + parameters->by);
}

HPE_HOST_KERNEL(scatter, scatter_parameters) {
  sleep_for(parameters->delay);
  const std::uint64_t points = (parameters->count + parameters->stride - 1) / parameters->stride;
  const part mine = part_of(tiles, points);
  for (std::uint64_t k = mine.begin; k < mine.end; ++k) parameters->data[k * parameters->stride] = parameters->value;
}

HPE_HOST_KERNEL(combine, combine_parameters) {
  sleep_for(parameters->delay);
  const part mine = part_of(tiles, parameters->count);
  for (std::uint64_t i = mine.begin; i < mine.end; ++i)
    parameters->result[i] = combined(parameters->source[i], parameters->key);
}

// Launched with one tile.
HPE_HOST_KERNEL(digest, digest_parameters) {
  (void)tiles;
  sleep_for(parameters->delay);
  *parameters->result = digest_of(parameters->source, parameters->count);
}
