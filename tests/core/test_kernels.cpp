#include "tests/core/test_kernels.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "hpe/kernel.h"
#include "tests/core/tiles.h"

HPE_HOST_KERNEL(fill, fill_parameters) {
  const part mine = part_of(tiles, parameters->count);
  for (std::uint64_t i = mine.begin; i < mine.end; ++i)
    parameters->data[i] = parameters->first + static_cast<std::uint32_t>(i);
}

HPE_HOST_KERNEL(add, add_parameters) {
  const part mine = part_of(tiles, parameters->count);
  for (std::uint64_t i = mine.begin; i < mine.end; ++i)
    parameters->result[i] = parameters->left[i] + parameters->right[i];
}

HPE_HOST_KERNEL(increment, increment_parameters) {
  if (parameters->sleep_microseconds != 0) ::usleep(parameters->sleep_microseconds);
  const part mine = part_of(tiles, parameters->count);
  for (std::uint64_t i = mine.begin; i < mine.end; ++i) parameters->data[i] += parameters->by;
}

HPE_HOST_KERNEL(meet, meet_parameters) {
  const std::atomic_ref<std::uint32_t> arrived(*parameters->arrived);
  for (std::uint64_t tile = tiles->begin; tile < tiles->end; ++tile) ++arrived;
  while (arrived.load() < parameters->all) ::usleep(1);
  for (std::uint64_t tile = tiles->begin; tile < tiles->end; ++tile) parameters->results[tile] = arrived.load();
}

HPE_HOST_KERNEL(nothing, crash_parameters) {
  (void)parameters;
  (void)tiles;
}

HPE_HOST_KERNEL(divide, divide_parameters) {
  (void)tiles;
  const volatile std::int32_t one = 1;  // otherwise the compiler omits the division
  *parameters->result = one / parameters->by;
}

HPE_HOST_KERNEL(crash, crash_parameters) {
  (void)tiles;
  *parameters->at = 1;
}
