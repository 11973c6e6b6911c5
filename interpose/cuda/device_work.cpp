#include "interpose/cuda/device_work.h"

namespace hpe::cuda_hooks {

CUresult device_work::begin(std::initializer_list<used_range> ranges) {
  interposer* const hpe = interposer::started();
  if (hpe == nullptr) return CUDA_SUCCESS;
  const CUresult result = ranges.size() == 0 ? hpe->adopted().begin_work() : hpe->adopted().begin_work(ranges);
  begun_ = result == CUDA_SUCCESS;
  return result;
}

void device_work::end() noexcept { interposer::started()->adopted().end_work(); }

}  // namespace hpe::cuda_hooks
