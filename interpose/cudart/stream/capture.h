#pragma once

#include <driver_types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "interpose/cudart/graph/graph.h"
#include "interpose/cudart/stream/event.h"
#include "interpose/cudart/stream/stream.h"

namespace hpe::cudart {

/// The answer of cudaStreamGetCaptureInfo. The pointers are valid until the capture changes.
struct capture_state {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  std::uint64_t id = 0;
  graph* into = nullptr;
  const std::vector<graph_node*>* after = nullptr;
};

/// One capture sequence: the work of its streams becomes nodes of a graph instead of running. It begins in one stream;
/// another stream joins when it waits for an event recorded in the sequence. A call that CUDA forbids during a capture
/// invalidates it: every use of its streams then fails with cudaErrorStreamCaptureInvalidated until the capture ends.
/// Thread safe. Members throw failure.
class capture : public std::enable_shared_from_this<capture> {
 public:
  capture(std::shared_ptr<graph> into, cudaStreamCaptureMode mode);

  /// Begins the capture in a stream; the first node depends on `after`, nodes that the graph already has. Throws
  /// cudaErrorStreamCaptureUnsupported for the legacy stream, cudaErrorIllegalState for a stream that is capturing.
  void begin(const std::shared_ptr<stream>& origin, std::span<graph_node* const> after);

  /// Ends the capture and returns the graph. `origin` must be the stream in which the capture began and, unless the
  /// mode is relaxed, the calling thread the one that began it. Any other error ends the capture too.
  std::shared_ptr<graph> end(stream& origin);

  /// Adds a node that depends on the nodes captured last in the stream.
  graph_node& add(stream& where, std::shared_ptr<const operation> what);

  void record(stream& where, event& what);                       ///< sets the event to the stream's position
  void join(stream& where, std::span<graph_node* const> after);  ///< the stream's next node depends on these too
  void set_position(stream& where, std::span<graph_node* const> after);
  void invalidate(std::string why);  ///< `why` is a sentence for the log; the first one stays

  /// To be called when the program destroys a stream of the capture. If the capture began in it, nothing can end the
  /// capture, and it is invalidated. Any other stream stays part of it: its work must join, as that of other streams.
  void lose(const stream& destroyed);

  capture_state state(const stream& where) const;                      ///< status None after the end
  bool forbids_unsafe_calls(cudaStreamCaptureMode thread_mode) const;  ///< to the calling thread

 private:
  void require_valid() const;  // needs the mutex
  bool all_joined() const;

  const std::shared_ptr<graph> graph_;
  const cudaStreamCaptureMode mode_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const std::uint64_t id_;

  mutable std::mutex mutex_;
  bool valid_ = true;
  std::string why_invalid_;
  const stream* origin_ = nullptr;
  std::vector<std::shared_ptr<stream>> streams_;
  std::unordered_map<const stream*, std::vector<graph_node*>> positions_;  // dependencies of each stream's next node
};

/// The captures in progress in a process. Thread safe.
class capture_table {
 public:
  void add(const std::shared_ptr<capture>& begun);

  /// To be called before operations that could disturb a capture (cudaMalloc, cudaMemcpy, ...). If the capture modes of
  /// a capture and of the thread forbid them, invalidates that capture and throws cudaErrorStreamCaptureUnsupported.
  void require_unsafe_calls_allowed();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<capture>> captures_;
};

/// The calling thread's capture mode, as cudaThreadExchangeStreamCaptureMode sets it.
cudaStreamCaptureMode& thread_capture_mode();

/// To be called before operations that cannot be captured. If the stream is capturing, or is the legacy stream of a
/// device with capturing blocking streams, invalidates these captures and throws.
void require_not_capturing(stream& where);

/// To be called before operations on all streams of a device (cudaDeviceSynchronize), with the captures in these.
void require_none_capturing(const std::vector<std::shared_ptr<capture>>& active);

/// cudaEventRecordWithFlags and cudaStreamWaitEvent. Graph nodes keep the event's handle.
void record_event(stream& where, cudaEvent_t handle, const std::shared_ptr<event>& what, unsigned flags);
void wait_for_event(stream& where, cudaEvent_t handle, const std::shared_ptr<event>& what, unsigned flags);

}  // namespace hpe::cudart
