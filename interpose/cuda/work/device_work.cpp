#include "interpose/cuda/work/device_work.h"

namespace hpe::cuda_hooks {

void device_work::begin(std::initializer_list<used_range> ranges) {
  // The list of work in flight takes over. A thread that reads the list may be waiting for this thread to leave.
  queuing_threads::leave(here_);
  interposer* const hpe = interposer::started();
  if (hpe == nullptr) return;
  result_ = ranges.size() == 0 ? hpe->adopted().begin_work(in_flight_) : hpe->adopted().begin_work(in_flight_, ranges);
  begun_ = result_ == CUDA_SUCCESS;
}

void device_work::begin(const kernel_launch& launch) {
  interposer* const hpe = interposer::started();
  if (hpe == nullptr || !hpe->scope_is_parameters()) return begin(std::initializer_list<used_range>{});
  const auto words = words_of(hpe->driver(), launch);
  if (!words) return begin(std::initializer_list<used_range>{});
  queuing_threads::leave(here_);
  result_ = hpe->adopted().begin_work(in_flight_, *words);
  begun_ = result_ == CUDA_SUCCESS;
}

void device_work::end() noexcept { interposer::started()->adopted().end_work(in_flight_); }

}  // namespace hpe::cuda_hooks
