#include "interpose/gpu/calls/scratch_memory.h"

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

// Each loan owns a reference to the object, so the destructor runs only when no loan is left. If the context has ended,
// the memory has ended with it, and the program may have new memory at these addresses; so the destructor frees
// nothing.
scratch_memory::~scratch_memory() {
  const entered here(cu_, parts_->context());
  if (!parts_->alive()) return;
  for (const CUdeviceptr memory : slabs_) release(memory, slab);
  for (const auto& [size, all] : free_)
    for (const CUdeviceptr memory : all)
      if (size >= slab) release(memory, size);
}

CUdeviceptr scratch_memory::allocate(std::size_t size) {
  HPE_REQUIRE(cu_.cuMemAlloc != nullptr && cu_.cuMemFree != nullptr, HPE_ERROR_NOT_SUPPORTED,
              "this driver has no cuMemAlloc");
  const entered here(cu_, parts_->context());
  CUdeviceptr memory = 0;
  cu_.check(cu_.cuMemAlloc(&memory, size + 2 * guard), "allocating device memory for messages");
  return memory + guard;
}

void scratch_memory::release(CUdeviceptr memory, std::size_t size) noexcept {
  told_(memory - guard, size + 2 * guard);
  cu_.cuMemFree(memory - guard);
}

std::shared_ptr<std::byte> scratch_memory::borrow(std::size_t bytes) {
  const std::size_t size = lent_for(bytes);
  CUdeviceptr memory = 0;
  {
    const lock_guard lock(mutex_);
    auto& free = free_[size];
    if (free.empty() && size < slab) {
      // The lists are enlarged first, so that nothing throws after the allocation, and give_back() can always add a
      // small block to its list.
      slabs_.reserve(slabs_.size() + 1);
      free.reserve((slabs_.size() + 1) * (slab / size));
      slabs_.push_back(allocate(slab));
      for (std::size_t at = 0; at < slab; at += size) free.push_back(slabs_.back() + at);
    }
    if (!free.empty()) {
      memory = free.back();
      free.pop_back();
      if (size >= slab) kept_ -= size;
    }
  }
  if (memory == 0) memory = allocate(size);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the device
  return {reinterpret_cast<std::byte*>(memory),
          [self = shared_from_this(), size](std::byte* p) { self->give_back(reinterpret_cast<CUdeviceptr>(p), size); }};
}

// borrow() has already reserved enough space in the list of each small size. Only the list of a large size may have to
// grow here. If there is too little host memory for the longer list, this function frees the device memory instead.
void scratch_memory::give_back(CUdeviceptr memory, std::size_t size) noexcept {
  try {
    const lock_guard lock(mutex_);
    if (size < slab || kept_ + size <= most) {
      free_.at(size).push_back(memory);
      if (size >= slab) kept_ += size;
      return;
    }
  } catch (const std::bad_alloc&) {
  }
  const entered here(cu_, parts_->context());
  if (parts_->alive()) release(memory, size);
}

}  // namespace hpe::cuda_hooks
