#include "interpose/gpu/copies/pinned_ring.h"

namespace hpe::cuda_hooks {

pinned_ring::pinned_ring(const device::cuda::driver& cu) : cu_(cu) {
  void* memory = nullptr;
  cu_.check(cu_.cuMemHostAlloc(&memory, buffer_bytes * buffer_count, CU_MEMHOSTALLOC_PORTABLE), "pinning buffers");
  memory_ = static_cast<std::byte*>(memory);
  try {
    free_.reserve(buffer_count);
    for (std::size_t i = 0; i < buffer_count; ++i) {
      CUevent done = nullptr;
      cu_.check(cu_.cuEventCreate(&done, CU_EVENT_DISABLE_TIMING), "creating an event");
      free_.push_back({memory_ + i * buffer_bytes, done});
    }
  } catch (...) {
    release();
    throw;
  }
}

pinned_ring::~pinned_ring() { release(); }

void pinned_ring::release() noexcept {
  const lock_guard lock(mutex_);
  for (const buffer& b : free_) {
    cu_.cuEventSynchronize(b.done);
    cu_.cuEventDestroy(b.done);
  }
  if (memory_ != nullptr) cu_.cuMemFreeHost(memory_);
}

void pinned_ring::abandon() noexcept {
  const lock_guard lock(mutex_);
  free_.clear();
  memory_ = nullptr;
}

pinned_ring::buffer pinned_ring::first() {
  const buffer result = free_.front();
  free_.erase(free_.begin());
  return result;
}

pinned_ring::loan pinned_ring::take() {
  unique_lock lock(mutex_);
  returned_.wait(lock, [&]() HPE_REQUIRES(mutex_) { return !free_.empty(); });
  return {*this, first()};
}

pinned_ring::loan pinned_ring::try_take() {
  const lock_guard lock(mutex_);
  if (free_.empty()) return {};
  return {*this, first()};
}

void pinned_ring::give_back(buffer used) noexcept {
  {
    const lock_guard lock(mutex_);
    free_.push_back(used);
  }
  returned_.notify_one();
}

CUresult pinned_ring::loan::used_by(CUstream stream) const {
  const CUresult recorded = ring_->cu_.cuEventRecord(lent_.done, stream);
  if (recorded == CUDA_SUCCESS) return recorded;
  ring_->cu_.cuStreamSynchronize(stream);
  return recorded;
}

}  // namespace hpe::cuda_hooks
