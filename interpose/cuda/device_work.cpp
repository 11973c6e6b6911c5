#include "interpose/cuda/device_work.h"

namespace hpe::cuda_hooks {

void device_work::begin(std::initializer_list<used_range> ranges) {
  // The lock in begin_work takes over. A thread that holds it may be waiting in wait_until_none for this thread to
  // leave.
  queuing_threads::leave(here_);
  interposer* const hpe = interposer::started();
  if (hpe == nullptr) return;
  result_ = ranges.size() == 0 ? hpe->adopted().begin_work() : hpe->adopted().begin_work(ranges);
  begun_ = result_ == CUDA_SUCCESS;
}

void device_work::begin(const kernel_launch& launch) {
  interposer* const hpe = interposer::started();
  if (hpe == nullptr || !hpe->scope_is_parameters()) return begin(std::initializer_list<used_range>{});
  const auto words = words_of(hpe->driver(), launch);
  if (!words) return begin(std::initializer_list<used_range>{});
  queuing_threads::leave(here_);
  result_ = hpe->adopted().begin_work(*words);
  begun_ = result_ == CUDA_SUCCESS;
}

void device_work::end() noexcept { interposer::started()->adopted().end_work(); }

}  // namespace hpe::cuda_hooks
