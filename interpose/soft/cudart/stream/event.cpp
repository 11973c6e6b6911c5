// A recording is a separate task on the stream, so that stamp() runs when the earlier work has finished. This task owns
// the shared_event::pending of the recording. So for other processes, too, the recording is reached when the task has
// run or has been dropped.

#include "interpose/soft/cudart/stream/event.h"

#include <chrono>
#include <utility>

#include "interpose/soft/cudart/device/failure.h"

namespace hpe::cudart {

void recording::stamp() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  time_.store(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(), std::memory_order_relaxed);
}

std::int64_t recording::time() const {
  // reached() is an acquire operation, so time_ is visible.
  return end_.reached() ? time_.load(std::memory_order_relaxed) : 0;
}

void event::record(cudart_stream& where) {
  require(where.device() == device_, cudaErrorInvalidResourceHandle);
  const auto made = std::make_shared<recording>(point{}, where.shared_from_this());
  const lock_guard lock(mutex_);  // so that last_ is the recording that is last in the stream
  auto pending = shared_ ? shared_->begin() : nullptr;
  if (pending) made->shared_ = pending->where();
  const auto stamp = [made, pending] {
    made->stamp();
    return cudaSuccess;
  };
  check(where.enqueue(stamp, {}, &made->end_));
  if (pending) shared_->publish(*pending);
  last_ = made;
  is_captured_ = false;
}

std::shared_ptr<recording> event::promise(cudart_stream& where) {
  // This timeline consists of one task, which finishes when the last reference to the recording is released.
  const auto line = std::make_shared<stream_timeline>();
  const auto made = std::make_shared<recording>(point{line, 1}, where.shared_from_this());
  const lock_guard lock(mutex_);
  auto pending = shared_ ? shared_->begin() : nullptr;
  if (pending) {
    made->shared_ = pending->where();
    shared_->publish(*pending);
  }
  last_ = made;
  is_captured_ = false;
  return {made.get(), [made, line, pending](recording*) mutable {
            pending.reset();
            line->advance();
          }};
}

void event::set_captured(captured_point where) {
  const lock_guard lock(mutex_);
  last_.reset();
  is_captured_ = true;
  captured_ = std::move(where);
}

bool event::is_captured() const {
  const lock_guard lock(mutex_);
  return is_captured_;
}

captured_point event::captured() const {
  const lock_guard lock(mutex_);
  return is_captured_ ? captured_ : captured_point{};
}

std::shared_ptr<const recording> event::last() const {
  const lock_guard lock(mutex_);
  return last_of_all();
}

std::shared_ptr<const recording> event::last_of_all() const {
  if (!shared_ || is_captured_) return last_;
  const shared_event::position where = shared_->last();
  if (where == 0 || (last_ && last_->shared_ == where)) return last_;
  return std::make_shared<recording>(point{std::make_shared<foreign_recording>(shared_, where), 1}, nullptr);
}

std::shared_ptr<const recording> event::last_outside_capture() const {
  require(!in_host_function(), cudaErrorNotPermitted);
  const lock_guard lock(mutex_);
  require(!is_captured_, cudaErrorCapturedEvent);
  return last_of_all();
}

cudaError_t event::query() const {
  const auto made = last_outside_capture();
  if (!made) return cudaSuccess;
  if (made->fault() != cudaSuccess) return made->fault();
  // For other processes and handles, the recording may be reached before its point is reached. The program may know
  // from them that the recording is reached, so this function must not return cudaErrorNotReady.
  const auto past = made->past();
  const bool reached = made->end().reached() || (shared_ && made->shared_ != 0 && shared_->reached(made->shared_));
  if (reached) tell_wait(past);
  return reached ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t event::synchronize() const {
  const auto made = last_outside_capture();
  if (!made) return cudaSuccess;
  const auto past = made->past();
  made->end().wait();
  tell_wait(past);
  return made->fault();
}

float elapsed_milliseconds(const event& from, const event& to) {
  require(((from.flags() | to.flags()) & cudaEventDisableTiming) == 0, cudaErrorInvalidResourceHandle);
  require(from.device() == to.device(), cudaErrorInvalidResourceHandle);
  const auto begin = from.last();
  const auto end = to.last();
  require(begin && end, cudaErrorInvalidResourceHandle);
  check(begin->fault());
  require(begin->end().reached() && end->end().reached(), cudaErrorNotReady);
  tell_wait(begin->past());
  tell_wait(end->past());
  return static_cast<float>(static_cast<double>(end->time() - begin->time()) * 1e-6);
}

void event_table::reset(int device) {
  take_if([&](const event& each) { return each.device() == device; });
}

}  // namespace hpe::cudart
