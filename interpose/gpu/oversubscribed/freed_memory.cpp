#include "interpose/gpu/oversubscribed/freed_memory.h"

#include <algorithm>
#include <utility>

namespace hpe::cuda_hooks {

CUdeviceptr freed_memory::take(std::size_t bytes, unsigned device) {
  const lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      kept_, [&](const program_object& each) { return each.bytes == bytes && each.device == device; });
  if (found == kept_.end()) return 0;
  const CUdeviceptr base = found->base;
  kept_.erase(found);
  return base;
}

freed_memory::list freed_memory::keep(list&& one) noexcept {
  list given_back;
  const lock_guard lock(mutex_);
  const unsigned device = one.front().device;
  kept_.splice(kept_.begin(), one);
  std::size_t sum = 0;
  for (auto each = kept_.begin(); each != kept_.end();) {
    const auto next = std::next(each);
    if (each->device == device) {
      if (sum + each->bytes > most_)
        given_back.splice(given_back.end(), kept_, each);
      else
        sum += each->bytes;
    }
    each = next;
  }
  return given_back;
}

void freed_memory::put_back(list&& those) noexcept {
  const lock_guard lock(mutex_);
  kept_.splice(kept_.end(), those);
}

freed_memory::list freed_memory::take_all() noexcept {
  const lock_guard lock(mutex_);
  return std::exchange(kept_, {});
}

std::size_t freed_memory::bytes_on(unsigned device) const {
  const lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const program_object& each : kept_) sum += each.device == device ? each.bytes : 0;
  return sum;
}

}  // namespace hpe::cuda_hooks
