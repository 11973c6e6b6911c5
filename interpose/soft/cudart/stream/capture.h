#pragma once

#include <driver_types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "interpose/soft/cudart/graph/graph.h"
#include "interpose/soft/cudart/stream/cudart_stream.h"
#include "interpose/soft/cudart/stream/event.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

/// The result of cudaStreamGetCaptureInfo. The pointers are valid until the next change of the capture.
struct capture_state {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  std::uint64_t id = 0;
  graph* into = nullptr;
  const std::vector<graph_node*>* after = nullptr;
};

/// A capture: work that the program queues on the captured streams becomes nodes of a graph and does not run. A capture
/// begins on one stream; another stream joins the capture by waiting for an event that was recorded during the capture.
/// A call that CUDA forbids during a capture invalidates the capture: every later use of its streams fails with
/// cudaErrorStreamCaptureInvalidated until the capture ends. Thread safe. The functions throw `failure`.
class capture : public std::enable_shared_from_this<capture> {
 public:
  capture(std::shared_ptr<graph> into, cudaStreamCaptureMode mode);

  /// Begins the capture on a stream. The first captured node depends on the nodes `after`, which already exist in the
  /// graph. Throws cudaErrorStreamCaptureUnsupported for the legacy stream, and cudaErrorIllegalState for a stream that
  /// is being captured.
  void begin(const std::shared_ptr<cudart_stream>& origin, std::span<graph_node* const> after);

  /// Ends the capture and returns the graph. `origin` must be the stream on which the capture began. Unless the mode is
  /// relaxed, the calling thread must be the thread that began the capture. If one of these conditions does not hold,
  /// the capture continues; any other error ends it.
  std::shared_ptr<graph> end(cudart_stream& origin);

  /// Adds a node that depends on the last nodes captured on the stream.
  graph_node& add(cudart_stream& where, std::shared_ptr<const stream_operation> what);

  void record(cudart_stream& where, event& what);  ///< sets the event to the last nodes captured on the stream
  void join(cudart_stream& where,
            std::span<graph_node* const> after);  ///< the stream's next node depends on `after`, too
  void set_position(cudart_stream& where, std::span<graph_node* const> after);
  void invalidate(std::string why);  ///< `why` is a sentence for the log; only the first sentence is kept

  /// To be called when the program destroys a stream that takes part in the capture. If the capture began on this
  /// stream, the capture is invalidated, because no call can end it any more. Any other stream remains a part of the
  /// capture: before the capture ends, the stream on which it began must still wait for that stream's work.
  void lose(const cudart_stream& destroyed);

  capture_state state(const cudart_stream& where) const;               ///< status None after the capture's end
  bool forbids_unsafe_calls(cudaStreamCaptureMode thread_mode) const;  ///< for the calling thread

 private:
  void invalidate_locked(std::string why) HPE_REQUIRES(mutex_);
  void require_valid() const HPE_REQUIRES(mutex_);
  bool all_joined() const HPE_REQUIRES(mutex_);

  const std::shared_ptr<graph> graph_;
  const cudaStreamCaptureMode mode_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const std::uint64_t id_;

  mutable mutex mutex_;
  bool valid_ HPE_GUARDED_BY(mutex_) = true;
  std::string why_invalid_ HPE_GUARDED_BY(mutex_);
  const cudart_stream* origin_ HPE_GUARDED_BY(mutex_) = nullptr;
  std::vector<std::shared_ptr<cudart_stream>> streams_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<const cudart_stream*, std::vector<graph_node*>> positions_
      HPE_GUARDED_BY(mutex_);  // the nodes before each stream's next node
};

/// The captures that are in progress in a process. Thread safe.
class capture_table {
 public:
  void add(const std::shared_ptr<capture>& begun);

  /// To be called before an operation that could disturb a capture (cudaMalloc, cudaMemcpy, ...). If the mode of any
  /// capture and the mode of the calling thread forbid the operation, invalidates that capture and throws
  /// cudaErrorStreamCaptureUnsupported.
  void require_unsafe_calls_allowed();

 private:
  mutex mutex_;
  std::vector<std::weak_ptr<capture>> captures_ HPE_GUARDED_BY(mutex_);
};

/// Returns the capture mode of the calling thread, which cudaThreadExchangeStreamCaptureMode sets.
cudaStreamCaptureMode& thread_capture_mode();

/// To be called before an operation that cannot be captured, with the operation's stream. If the stream is being
/// captured, invalidates the capture and throws. If the stream is the legacy stream of a device on which blocking
/// streams are being captured, invalidates their captures and throws.
void require_not_capturing(cudart_stream& where);

/// To be called before an operation on all streams of a device (cudaDeviceSynchronize), with the captures of these
/// streams. If there are any captures, invalidates all of them and throws.
void require_none_capturing(const std::vector<std::shared_ptr<capture>>& active);

/// Implement cudaEventRecordWithFlags and cudaStreamWaitEvent. If the stream is being captured, the graph node keeps
/// the event's handle.
void record_event(cudart_stream& where, cudaEvent_t handle, const std::shared_ptr<event>& what, unsigned flags);
void wait_for_event(cudart_stream& where, cudaEvent_t handle, const std::shared_ptr<event>& what, unsigned flags);

}  // namespace hpe::cudart
