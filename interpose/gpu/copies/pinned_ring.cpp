#include "interpose/gpu/copies/pinned_ring.h"

#include <algorithm>

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
      free_.push_back({memory_ + i * buffer_bytes, done, nullptr});
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

pinned_ring::buffer pinned_ring::remove(std::vector<buffer>::iterator which) {
  const buffer result = *which;
  free_.erase(which);
  return result;
}

pinned_ring::loan pinned_ring::take() {
  unique_lock lock(mutex_);
  returned_.wait(lock, [&]() HPE_REQUIRES(mutex_) { return !free_.empty(); });
  return {*this, remove(free_.begin())};
}

pinned_ring::loan pinned_ring::try_take(CUstream user) {
  const lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      free_, [&](const buffer& each) { return each.user == user || cu_.cuEventQuery(each.done) == CUDA_SUCCESS; });
  if (found == free_.end()) return {};
  return {*this, remove(found)};
}

void pinned_ring::give_back(buffer used) noexcept {
  {
    const lock_guard lock(mutex_);
    free_.push_back(used);
  }
  returned_.notify_one();
}

CUresult pinned_ring::loan::used_by(CUstream stream) {
  lent_.user = stream;
  const CUresult recorded = ring_->cu_.cuEventRecord(lent_.done, stream);
  if (recorded == CUDA_SUCCESS) return recorded;
  ring_->cu_.cuStreamSynchronize(stream);
  return recorded;
}

}  // namespace hpe::cuda_hooks
