#include "interpose/cuda/calls/own_memory.h"

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

// What is lent keeps the object alive. What is gone with its context may be the program's by now.
own_memory::~own_memory() {
  const entered here(cu_, parts_->context());
  if (!parts_->alive()) return;
  for (const auto& [size, all] : free_)
    for (const CUdeviceptr memory : all) {
      told_(memory, size);
      cu_.cuMemFree(memory);
    }
}

std::shared_ptr<std::byte> own_memory::borrow(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes, smallest));
  CUdeviceptr memory = 0;
  {
    const std::lock_guard lock(mutex_);
    auto& free = free_[size];
    if (!free.empty()) {
      memory = free.back();
      free.pop_back();
      kept_ -= size;
    }
  }
  if (memory == 0) {
    HPE_REQUIRE(cu_.cuMemAlloc != nullptr && cu_.cuMemFree != nullptr, HPE_ERROR_NOT_SUPPORTED,
                "this driver has no cuMemAlloc");
    const entered here(cu_, parts_->context());
    cu_.check(cu_.cuMemAlloc(&memory, size), "allocating device memory for messages");
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is the device's
  return {reinterpret_cast<std::byte*>(memory),
          [self = shared_from_this(), size](std::byte* p) { self->give_back(reinterpret_cast<CUdeviceptr>(p), size); }};
}

void own_memory::give_back(CUdeviceptr memory, std::size_t size) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (kept_ + size <= most_kept) {
      free_[size].push_back(memory);
      kept_ += size;
      return;
    }
  }
  const entered here(cu_, parts_->context());
  if (!parts_->alive()) return;
  told_(memory, size);
  cu_.cuMemFree(memory);
}

}  // namespace hpe::cuda_hooks
