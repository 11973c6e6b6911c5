#include "interpose/cuda/spread/launch_clock.h"

namespace hpe::cuda_hooks {

namespace {

constexpr std::size_t most_open = 256;  // launches whose end is not waited for

}  // namespace

CUevent launch_clock::take() {
  CUevent made = nullptr;
  if (spare_.empty()) return cu_.cuEventCreate(&made, CU_EVENT_DEFAULT) == CUDA_SUCCESS ? made : nullptr;
  made = spare_.back();
  spare_.pop_back();
  return made;
}

void launch_clock::begins(CUstream stream) {
  if (!runs() || cu_.cuEventElapsedTime == nullptr) return;
  settle(most_open);
  begun_ = take();
  if (begun_ != nullptr) cu_.cuEventRecord(begun_, stream);
}

void launch_clock::ends(CUstream stream, const std::string& kernel, unsigned devices, const std::string& reason) {
  if (!runs()) return;
  const CUevent end = begun_ != nullptr ? take() : nullptr;
  if (end == nullptr) return table_->add(kernel, devices, 0, reason);
  cu_.cuEventRecord(end, stream);
  open_.push_back({begun_, end, kernel, reason, devices});
  begun_ = nullptr;
}

void launch_clock::counts(const std::string& kernel, const std::string& reason) {
  if (runs()) table_->add(kernel, 1, 0, reason);
}

void launch_clock::settle(std::size_t most_left) {
  const device::cuda::uncaptured here(cu_);
  while (!open_.empty()) {
    const measured& first = open_.front();
    float ms = 0;
    if (open_.size() <= most_left && cu_.cuEventQuery(first.end) != CUDA_SUCCESS) return;
    if (cu_.cuEventSynchronize(first.end) != CUDA_SUCCESS ||
        cu_.cuEventElapsedTime(&ms, first.begin, first.end) != CUDA_SUCCESS)
      ms = 0;
    table_->add(first.kernel, first.devices, static_cast<double>(ms) / 1e3, first.reason);
    spare_.insert(spare_.end(), {first.begin, first.end});
    open_.pop_front();
  }
}

void launch_clock::finish() {
  settle(0);
  for (const CUevent event : spare_) cu_.cuEventDestroy(event);
  spare_.clear();
}

}  // namespace hpe::cuda_hooks
