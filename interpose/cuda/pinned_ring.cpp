#include "interpose/cuda/pinned_ring.h"

#include "runtime/base/log.h"

namespace hpe::cuda_hooks {

using device::cuda::driver;
using device::cuda::entered;

pinned_ring::pinned_ring(const driver& cu, CUcontext context) : cu_(cu), context_(context) {
  const entered here(cu_, context_);
  void* memory = nullptr;
  cu_.check(cu_.cuMemHostAlloc(&memory, buffer_bytes * buffer_count, CU_MEMHOSTALLOC_PORTABLE), "pinning buffers");
  memory_ = static_cast<std::byte*>(memory);
  cu_.check(cu_.cuEventCreate(&witness_, CU_EVENT_DISABLE_TIMING), "creating an event");
  for (std::size_t i = 0; i < buffer_count; ++i) {
    free_.push_back({memory_ + i * buffer_bytes, nullptr});
    cu_.check(cu_.cuEventCreate(&free_.back().done, CU_EVENT_DISABLE_TIMING), "creating an event");
  }
}

bool pinned_ring::alive() const noexcept { return cu_.cuEventQuery(witness_) == CUDA_SUCCESS; }

pinned_ring::~pinned_ring() {
  const entered here(cu_, context_);
  // What is gone with its context may be the program's by now.
  if (!alive()) return;
  cu_.cuEventDestroy(witness_);
  for (const buffer& b : free_) {
    cu_.cuEventSynchronize(b.done);
    cu_.cuEventDestroy(b.done);
  }
  cu_.cuMemFreeHost(memory_);
}

pinned_ring::buffer pinned_ring::take() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return !free_.empty(); });
  const buffer result = free_.front();
  free_.erase(free_.begin());
  return result;
}

pinned_ring::buffer pinned_ring::try_take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return {};
  const buffer result = free_.front();
  free_.erase(free_.begin());
  return result;
}

void pinned_ring::give_back(buffer used) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(used);
  }
  returned_.notify_one();
}

std::shared_ptr<pinned_ring> pinned_rings::of(CUcontext context) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<pinned_ring>& ring = rings_[context];
  if (ring != nullptr && ring->alive()) return ring;
  try {
    ring = std::make_shared<pinned_ring>(cu_, context);
  } catch (const error& e) {
    log(log_level::info, "large copies go straight on: {}", e.what());
  }
  return ring;
}

void pinned_rings::clear() {
  std::map<CUcontext, std::shared_ptr<pinned_ring>> old;
  const std::lock_guard lock(mutex_);
  old.swap(rings_);
}

}  // namespace hpe::cuda_hooks
