#include "interpose/cuda/spread/program_lanes.h"

#include "runtime/base/error.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

program_lane::program_lane(const device::cuda::driver& cu, const joined_gpus& gpus, CUstream stream)
    : cu_(cu), gpus_(gpus), streams_(gpus.count()), done_(gpus.count()) {
  streams_[0] = stream;
  for (unsigned n = 0; n < gpus_.count(); ++n) {
    const entered here(cu_, gpus_.context(n));
    if (n > 0)
      cu_.check(cu_.cuStreamCreateWithPriority(&streams_[n], CU_STREAM_NON_BLOCKING, 0), "making a stream on a GPU");
    cu_.check(cu_.cuEventCreate(&done_[n], CU_EVENT_DISABLE_TIMING), "making an event on a GPU");
  }
  const entered here(cu_, gpus_.context(0));
  cu_.check(cu_.cuEventCreate(&begin_, CU_EVENT_DISABLE_TIMING), "making an event on a GPU");
}

// The driver ends streams and events after their work.
program_lane::~program_lane() {
  for (unsigned n = 0; n < gpus_.count(); ++n) {
    const entered here(cu_, gpus_.context(n));
    if (n > 0 && streams_[n] != nullptr) cu_.cuStreamDestroy(streams_[n]);
    if (done_[n] != nullptr) cu_.cuEventDestroy(done_[n]);
  }
  const entered here(cu_, gpus_.context(0));
  if (begin_ != nullptr) cu_.cuEventDestroy(begin_);
}

CUresult program_lane::fork() {
  CUresult result = cu_.cuEventRecord(begin_, streams_[0]);
  for (unsigned n = 1; n < gpus_.count() && result == CUDA_SUCCESS; ++n) {
    const entered here(cu_, gpus_.context(n));
    result = cu_.cuStreamWaitEvent(streams_[n], begin_, 0);
  }
  return result;
}

CUresult program_lane::failure() const {
  for (unsigned n = 1; n < gpus_.count(); ++n) {
    const entered here(cu_, gpus_.context(n));
    CUresult result = cu_.cuStreamQuery(streams_[n]);
    // The driver writes what kernels have printed in waits of their own context.
    if (result == CUDA_SUCCESS) result = cu_.cuStreamSynchronize(streams_[n]);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) return result;
  }
  return CUDA_SUCCESS;
}

bool program_lane::is_over() const {
  for (unsigned n = 0; ended_ && n < gpus_.count(); ++n) {
    const entered here(cu_, gpus_.context(n));
    if (cu_.cuEventQuery(done_[n]) == CUDA_ERROR_NOT_READY) return false;
  }
  return ended_;
}

std::shared_ptr<program_lane> program_lanes::of(CUstream stream) {
  auto& entry = lanes_[key_of(stream)];
  if (entry == nullptr) {
    CUcontext owner = nullptr;
    if (cu_.cuStreamGetCtx(stream, &owner) != CUDA_SUCCESS || owner != gpus_.context(0)) return nullptr;
    entry = std::make_shared<program_lane>(cu_, gpus_, stream);
  }
  return entry;
}

void program_lanes::forget(CUstream stream) {
  const auto found = lanes_.find(key_of(stream));
  if (found == lanes_.end()) return;
  if (found->second != nullptr) found->second->end();
  lanes_.erase(found);
}

CUresult program_lanes::failure() const {
  for (const auto& [which, lane] : lanes_) {
    if (lane == nullptr) continue;
    if (const CUresult result = lane->failure(); result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace hpe::cuda_hooks
