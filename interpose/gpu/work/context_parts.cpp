#include "interpose/gpu/work/context_parts.h"

#include <algorithm>

namespace hpe::cuda_hooks {

using device::cuda::entered;

context_parts::context_parts(const device::cuda::driver& cu, CUcontext context) : cu_(cu), context_(context) {
  const entered here(cu_, context_);
  cu_.check(cu_.cuEventCreate(&witness_, CU_EVENT_DISABLE_TIMING), "creating an event");
  number_ = number();
}

std::uint64_t context_parts::number() const noexcept {
  unsigned long long found = 0;
  if (cu_.cuCtxGetId != nullptr) cu_.cuCtxGetId(context_, &found);
  return found;
}

// Checks the context's number and an event, because drivers differ in what they return for the handles of a context
// that has ended.
bool context_parts::alive() const noexcept {
  const entered here(cu_, context_);
  return number() == number_ && cu_.cuEventQuery(witness_) == CUDA_SUCCESS;
}

context_parts::~context_parts() {
  const entered here(cu_, context_);
  // If the context has ended, the handles of its objects may belong to new objects of the program, so the destructor
  // destroys nothing.
  if (!alive()) {
    if (ring_ != nullptr) ring_->abandon();
    return;
  }
  for (const CUstream s : streams_) cu_.cuStreamSynchronize(s);
  ring_.reset();
  for (const CUstream s : streams_) cu_.cuStreamDestroy(s);
  cu_.cuEventDestroy(witness_);
}

CUstream context_parts::lend_stream() {
  const lock_guard lock(mutex_);
  const auto idle =
      std::find_if(free_.begin(), free_.end(), [&](CUstream s) { return cu_.cuStreamQuery(s) == CUDA_SUCCESS; });
  if (idle != free_.end()) {
    const CUstream found = *idle;
    free_.erase(idle);
    return found;
  }
  const entered here(cu_, context_);
  streams_.reserve(streams_.size() + 1);
  free_.reserve(streams_.size() + 1);  // so that give_back() never has to allocate
  CUstream made = nullptr;
  cu_.check(cu_.cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, 0), "creating a stream");
  streams_.push_back(made);
  return made;
}

void context_parts::give_back(CUstream lent) noexcept {
  const lock_guard lock(mutex_);
  free_.push_back(lent);
}

pinned_ring& context_parts::ring() {
  const lock_guard lock(mutex_);
  if (ring_ == nullptr) {
    const entered here(cu_, context_);
    ring_ = std::make_unique<pinned_ring>(cu_);
  }
  return *ring_;
}

std::shared_ptr<context_parts> contexts::of(CUcontext context) {
  std::shared_ptr<context_parts> old;  // released after the lock
  const lock_guard lock(mutex_);
  std::shared_ptr<context_parts>& parts = parts_[context];
  if (parts != nullptr && parts->alive()) return parts;
  old = std::move(parts);
  parts = std::make_shared<context_parts>(cu_, context);
  return parts;
}

void contexts::clear() {
  std::map<CUcontext, std::shared_ptr<context_parts>> old;
  const lock_guard lock(mutex_);
  old.swap(parts_);
}

}  // namespace hpe::cuda_hooks
