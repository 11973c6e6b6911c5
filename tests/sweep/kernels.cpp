#include "tests/sweep/kernels.h"

#include <cstring>

#include "hpe/kernel.h"
#include "tests/core/tiles.h"

HPE_HOST_KERNEL(copy_bytes, sweep::copy_parameters) {
  const part mine = part_of(tiles, parameters->bytes);
  std::memcpy(parameters->destination + mine.begin, parameters->source + mine.begin, mine.end - mine.begin);
}

HPE_HOST_KERNEL(add_to_bytes, sweep::add_parameters) {
  const part mine = part_of(tiles, parameters->bytes);
  for (std::uint64_t i = mine.begin; i < mine.end; ++i)
    parameters->data[i] = static_cast<std::uint8_t>(parameters->data[i] + parameters->by);
}
