#include "interpose/gpu/spread/launch_clock.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace hpe::cuda_hooks {

namespace {

constexpr std::size_t most_open = 256;  // the largest number of queued launches whose times hpe has not read yet
constexpr std::chrono::microseconds pause_of_looks{50};  // the shortest time between two queries by look()
// The limits of the wait for the end of a launch whose time the planner needs: a multiple of the predicted time, and a
// number of seconds.
constexpr double times_predicted = 4, longest_wait = 0.1;

}  // namespace

CUevent launch_clock::take() {
  CUevent made = nullptr;
  if (spare_.empty()) {
    spare_.reserve(events_ + 1);  // reserves space for all events, so that a later push_back() cannot throw
    if (cu_.cuEventCreate(&made, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return nullptr;
    ++events_;
    return made;
  }
  made = spare_.back();
  spare_.pop_back();
  return made;
}

CUevent launch_clock::begins(CUstream stream) {
  if (cu_.cuEventElapsedTime == nullptr) return nullptr;
  const lock_guard lock(mutex_);
  settle(most_open);
  CUevent const begun = take();
  if (begun != nullptr) cu_.cuEventRecord(begun, stream);
  return begun;
}

// The launch is already queued, so a failure of this function must not make the program's call fail.
void launch_clock::ends(CUevent begun, CUstream stream, timed_launch what) noexcept {
  const bool is_on_trial = what.measured.record != nullptr && what.measured.is_on_trial;
  const spread::way_record::prediction predicted = what.measured.predicted;
  CUevent end = nullptr;
  {
    const lock_guard lock(mutex_);
    bool is_open = false;
    try {
      open_.emplace_back();
      is_open = true;
      end = begun != nullptr ? take() : nullptr;
    } catch (const std::bad_alloc&) {  // the launch is not measured
    }
    if (end == nullptr) {
      if (is_open) open_.pop_back();
      if (begun != nullptr) spare_.push_back(begun);
      tell(what, 0);
      return;
    }
    cu_.cuEventRecord(end, stream);
    open_.back() = {begun, end, std::move(what)};
    known_open_.store(open_.size(), std::memory_order_relaxed);
  }
  if (!is_on_trial) return;
  await(end, predicted);
  const lock_guard lock(mutex_);
  settle(most_open);
}

void launch_clock::await(CUevent end, const spread::way_record::prediction& predicted) const {
  using seconds = std::chrono::duration<double>;
  const device::cuda::uncaptured here(cu_);
  const auto begin = std::chrono::steady_clock::now();
  const seconds limit(std::min(times_predicted * std::max(predicted.alone, predicted.spread), longest_wait));
  while (cu_.cuEventQuery(end) == CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() - begin < limit)
    std::this_thread::yield();
}

void launch_clock::counts(const timed_launch& what) noexcept { tell(what, 0); }

// If host memory is too short, the launch is missing from the table of --explain, or the planner does not use the
// launch's time.
void launch_clock::tell(const timed_launch& what, double seconds) noexcept {
  try {
    if (explains()) table_->add(what.kernel, what.devices, seconds, what.reason);
    if (what.measured.record != nullptr && seconds > 0) planner_->took(what.measured, seconds);
  } catch (const std::bad_alloc&) {
  }
}

void launch_clock::settle(std::size_t most_left) {
  const device::cuda::uncaptured here(cu_);
  while (!open_.empty()) {
    const open_launch& first = open_.front();
    float ms = 0;
    if (open_.size() <= most_left && cu_.cuEventQuery(first.end) != CUDA_SUCCESS) return;
    if (cu_.cuEventSynchronize(first.end) != CUDA_SUCCESS ||
        cu_.cuEventElapsedTime(&ms, first.begin, first.end) != CUDA_SUCCESS)
      ms = 0;
    tell(first.what, static_cast<double>(ms) / 1e3);
    spare_.insert(spare_.end(), {first.begin, first.end});
    open_.pop_front();
    known_open_.store(open_.size(), std::memory_order_relaxed);
  }
}

void launch_clock::look() noexcept {
  if (known_open_.load(std::memory_order_relaxed) == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_.load(std::memory_order_relaxed) < pause_of_looks) return;
  looked_.store(now, std::memory_order_relaxed);
  const lock_guard lock(mutex_);
  settle(most_open);
}

void launch_clock::finish() {
  const lock_guard lock(mutex_);
  settle(0);
  for (const CUevent event : spare_) cu_.cuEventDestroy(event);
  spare_.clear();
}

}  // namespace hpe::cuda_hooks
