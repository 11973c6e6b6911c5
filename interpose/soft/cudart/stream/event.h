#pragma once

#include <driver_types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "interpose/soft/cudart/device/handle_table.h"
#include "interpose/soft/cudart/stream/cudart_stream.h"
#include "interpose/soft/cudart/stream/shared_event.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

class capture;
class graph_node;

/// One recording of an event: a position in a stream and, after the stream has reached this position, the time at which
/// the stream reached it. The stream is null if another process has recorded the event.
class recording {
 public:
  recording(point end, std::shared_ptr<cudart_stream> where) : end_(std::move(end)), where_(std::move(where)) {}

  const point& end() const { return end_; }
  /// Returns what is ordered before the recording, for the checker. For a recording in a graph, this is all work that
  /// the graph's stream has now.
  check::past_ptr past() const { return end_.past != nullptr || !where_ ? end_.past : where_->last_past(); }
  /// Whether hpe cannot relate the recording to other work, because another process has made it.
  bool is_foreign() const { return where_ == nullptr; }
  cudaError_t fault() const { return where_ ? where_->fault() : cudaSuccess; }
  void stamp();               ///< sets the time to now
  std::int64_t time() const;  ///< the time in nanoseconds of the host's steady clock; 0 until the position is reached

 private:
  friend class event;
  point end_;
  std::shared_ptr<cudart_stream> where_;
  shared_event::position shared_ = 0;  // identifies the recording to other processes
  std::atomic<std::int64_t> time_{0};
};

/// The position of an event that was recorded during a stream capture: after these nodes.
struct captured_point {
  std::weak_ptr<capture> in;
  std::vector<graph_node*> after;
};

/// A CUDA event. A wait for the event refers to the last recording before the wait was queued. Thread safe. The
/// functions throw `failure`.
class event {
 public:
  /// `shared` is the state that the event shares with other processes, or null.
  event(int device, unsigned flags, std::shared_ptr<shared_event> shared = nullptr)
      : device_(device), flags_(flags), shared_(std::move(shared)) {}

  int device() const { return device_; }
  unsigned flags() const { return flags_; }
  const std::shared_ptr<shared_event>& shared() const { return shared_; }

  /// Queues a recording on a stream; the recording is reached after all work queued on the stream so far. Throws
  /// cudaErrorInvalidResourceHandle for a stream of another device.
  void record(cudart_stream& where);

  /// Returns a new recording for a graph node: the launch of the graph calls promise(), and the node reaches the
  /// recording later. The recording counts as reached when its stamp() has been called and the returned pointer has
  /// been released.
  std::shared_ptr<recording> promise(cudart_stream& where);

  /// Records the event at a point of a capture.
  void set_captured(captured_point where);

  bool is_captured() const;
  captured_point captured() const;  ///< empty if the event was not last recorded during a capture

  /// Returns the last recording by any process; null if the event was never recorded.
  std::shared_ptr<const recording> last() const;

  /// query() and synchronize() return cudaSuccess for an event that was never recorded. Both throw
  /// cudaErrorCapturedEvent if the event was last recorded during a capture.
  cudaError_t query() const;
  cudaError_t synchronize() const;

 private:
  std::shared_ptr<const recording> last_outside_capture() const;
  std::shared_ptr<const recording> last_of_all() const HPE_REQUIRES(mutex_);

  const int device_;
  const unsigned flags_;
  const std::shared_ptr<shared_event> shared_;
  mutable mutex mutex_;
  std::shared_ptr<recording> last_ HPE_GUARDED_BY(mutex_);
  bool is_captured_ HPE_GUARDED_BY(mutex_) = false;
  captured_point captured_ HPE_GUARDED_BY(mutex_);
};

/// Returns the time between the last recordings of two events, in milliseconds. Throws cudaErrorInvalidResourceHandle
/// if an event has no timing or was never recorded, or if the events belong to different devices. Throws
/// cudaErrorNotReady if a recording has not been reached.
float elapsed_milliseconds(const event& from, const event& to);

class event_table : public handle_table<cudaEvent_t, event, cudaErrorInvalidResourceHandle> {
 public:
  cudaEvent_t create(int device, unsigned flags, std::shared_ptr<shared_event> shared = nullptr) {
    return adopt(std::make_shared<event>(device, flags, std::move(shared)));
  }
  void reset(int device);  ///< removes the events of a device
};

}  // namespace hpe::cudart
