#pragma once

#include <driver_types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "interpose/cudart/device/handle_table.h"
#include "interpose/cudart/stream/shared_event.h"
#include "interpose/cudart/stream/stream.h"

namespace hpe::cudart {

class capture;
class graph_node;

/// One recording of an event: its position in a stream and, once that is reached, the time at which it was reached. The
/// stream is null for a recording of another process.
class recording {
 public:
  recording(point end, std::shared_ptr<stream> where) : end_(std::move(end)), where_(std::move(where)) {}

  const point& end() const { return end_; }
  cudaError_t fault() const { return where_ ? where_->fault() : cudaSuccess; }
  void stamp();               ///< sets the time to now
  std::int64_t time() const;  ///< nanoseconds of the host's steady clock; 0 while not reached

 private:
  friend class event;
  point end_;
  std::shared_ptr<stream> where_;
  shared_event::position shared_ = 0;  // its name in the shared event
  std::atomic<std::int64_t> time_{0};
};

/// The position of an event that was recorded during stream capture: after these nodes.
struct captured_point {
  std::weak_ptr<capture> in;
  std::vector<graph_node*> after;
};

/// A CUDA event. Waits refer to the recording that was the last one when they were queued. Thread safe. Members throw
/// failure.
class event {
 public:
  /// shared: the state that other processes see, or null.
  event(int device, unsigned flags, std::shared_ptr<shared_event> shared = nullptr)
      : device_(device), flags_(flags), shared_(std::move(shared)) {}

  int device() const { return device_; }
  unsigned flags() const { return flags_; }
  const std::shared_ptr<shared_event>& shared() const { return shared_; }

  /// Records after all work queued in the stream so far. Throws cudaErrorInvalidResourceHandle for a stream of another
  /// device.
  void record(stream& where);

  /// Makes a recording that is reached once its stamp() was called and the returned pointer released: for graph nodes,
  /// where the launch makes the recording and the node reaches it later.
  std::shared_ptr<recording> promise(stream& where);

  /// Sets the recording of a stream that is capturing.
  void set_captured(captured_point where);

  bool is_captured() const;
  captured_point captured() const;  ///< empty if the last recording was not captured

  /// The last recording, of any process; null if there is none.
  std::shared_ptr<const recording> last() const;

  /// cudaSuccess for an event that was never recorded. Both throw cudaErrorCapturedEvent if the last recording was
  /// captured.
  cudaError_t query() const;
  cudaError_t synchronize() const;

 private:
  std::shared_ptr<const recording> last_outside_capture() const;
  std::shared_ptr<const recording> last_of_all() const;  // needs the mutex

  const int device_;
  const unsigned flags_;
  const std::shared_ptr<shared_event> shared_;
  mutable std::mutex mutex_;
  std::shared_ptr<recording> last_;
  bool is_captured_ = false;
  captured_point captured_;
};

/// Milliseconds from one event to the other. Throws cudaErrorInvalidResourceHandle for events without timing, never
/// recorded, or of different devices; cudaErrorNotReady if one is not reached yet.
float elapsed_milliseconds(const event& from, const event& to);

class event_table : public handle_table<cudaEvent_t, event, cudaErrorInvalidResourceHandle> {
 public:
  cudaEvent_t create(int device, unsigned flags, std::shared_ptr<shared_event> shared = nullptr) {
    return adopt(std::make_shared<event>(device, flags, std::move(shared)));
  }
  void reset(int device);  ///< forgets the events of a device
};

}  // namespace hpe::cudart
