#pragma once

#include <driver_types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/cudart/handle_table.h"
#include "interpose/cudart/stream.h"

namespace hpe::cudart {

class capture;
class graph_node;

/// One recording of an event: where it is in a stream's order and, once that is reached, when it was.
class recording {
 public:
  recording(point end, std::shared_ptr<stream> where) : end_(std::move(end)), where_(std::move(where)) {}

  const point& end() const { return end_; }
  cudaError_t fault() const { return where_->fault(); }
  void stamp();               ///< the time is now
  std::int64_t time() const;  ///< nanoseconds of the host's steady clock; 0 while not reached

 private:
  friend class event;
  point end_;
  std::shared_ptr<stream> where_;
  std::atomic<std::int64_t> time_{0};
};

/// Where an event was recorded during stream capture: behind these nodes.
struct captured_point {
  std::weak_ptr<capture> in;
  std::vector<graph_node*> after;
};

/// An event of CUDA. Its last recording counts; streams that were told to wait for an earlier one wait for that. Thread
/// safe. Members throw failure.
class event {
 public:
  event(int device, unsigned flags) : device_(device), flags_(flags) {}

  int device() const { return device_; }
  unsigned flags() const { return flags_; }

  /// Records behind all work of the stream so far. cudaErrorInvalidResourceHandle for a stream of another device.
  void record(stream& where);

  /// A recording that happens when somebody calls its stamp() and lets go of the result: for nodes of graphs, which are
  /// recorded by a launch and reached in the middle of it.
  std::shared_ptr<recording> promise(stream& where);

  /// Recorded by a stream that captures.
  void set_captured(captured_point where);

  bool is_captured() const;
  captured_point captured() const;  ///< empty unless it is

  /// The last recording; null if there is none.
  std::shared_ptr<const recording> last() const;

  /// cudaSuccess for an event that was never recorded. cudaErrorCapturedEvent for one that was captured.
  cudaError_t query() const;
  cudaError_t synchronize() const;

 private:
  std::shared_ptr<const recording> last_outside_capture() const;

  const int device_;
  const unsigned flags_;
  mutable std::mutex mutex_;
  std::shared_ptr<recording> last_;
  bool is_captured_ = false;
  captured_point captured_;
};

/// Milliseconds from one event to the other. cudaErrorInvalidResourceHandle for events without timing, never recorded
/// or of two devices; cudaErrorNotReady while one is not reached.
float elapsed_milliseconds(const event& from, const event& to);

class event_table : public handle_table<cudaEvent_t, event, cudaErrorInvalidResourceHandle> {
 public:
  cudaEvent_t create(int device, unsigned flags) { return adopt(std::make_shared<event>(device, flags)); }
  void reset(int device);  ///< forgets those of a device
};

}  // namespace hpe::cudart
