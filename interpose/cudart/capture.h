#pragma once

#include <driver_types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "interpose/cudart/event.h"
#include "interpose/cudart/graph.h"
#include "interpose/cudart/stream.h"

namespace hpe::cudart {

/// What cudaStreamGetCaptureInfo tells. The pointers are good until the next call for the capture.
struct capture_state {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  std::uint64_t id = 0;
  graph* into = nullptr;
  const std::vector<graph_node*>* after = nullptr;
};

/// One capture sequence: streams whose work becomes nodes of a graph instead. It begins in one stream; others join when
/// they wait for an event that was recorded in it. Calls that CUDA forbids meanwhile invalidate it: every use of its
/// streams fails with cudaErrorStreamCaptureInvalidated then, until it is ended. Thread safe. Members throw failure.
class capture : public std::enable_shared_from_this<capture> {
 public:
  capture(std::shared_ptr<graph> into, cudaStreamCaptureMode mode);

  /// Begins in a stream, behind nodes that are in the graph already. cudaErrorStreamCaptureUnsupported for the legacy
  /// stream, cudaErrorIllegalState for one that captures.
  void begin(const std::shared_ptr<stream>& origin, std::span<graph_node* const> after);

  /// Ends it, from the stream (and thread, unless the mode is relaxed) in which it began, and returns the graph. On
  /// every error except those of a wrong stream or thread the capture is over too.
  std::shared_ptr<graph> end(stream& origin);

  /// A new node behind what the stream captured so far.
  graph_node& add(stream& where, std::shared_ptr<const operation> what);

  void record(stream& where, event& what);                       ///< an event, behind what the stream captured so far
  void join(stream& where, std::span<graph_node* const> after);  ///< the stream goes on behind these nodes, too
  void set_position(stream& where, std::span<graph_node* const> after);
  void invalidate();

  capture_state state(const stream& where) const;                      ///< status None when it has ended
  bool forbids_unsafe_calls(cudaStreamCaptureMode thread_mode) const;  ///< by the calling thread

 private:
  void require_valid() const;  // needs the mutex
  bool all_joined() const;

  const std::shared_ptr<graph> graph_;
  const cudaStreamCaptureMode mode_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const std::uint64_t id_;

  mutable std::mutex mutex_;
  bool valid_ = true;
  const stream* origin_ = nullptr;
  std::vector<std::shared_ptr<stream>> streams_;
  std::unordered_map<const stream*, std::vector<graph_node*>> positions_;  // what each stream's next node depends on
};

/// The captures under way in a process. Thread safe.
class capture_table {
 public:
  void add(const std::shared_ptr<capture>& begun);

  /// Before calls that could disturb a capture (cudaMalloc, cudaMemcpy, ...): throws cudaErrorStreamCaptureUnsupported,
  /// and invalidates the captures, where modes of captures and thread forbid it.
  void require_unsafe_calls_allowed();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<capture>> captures_;
};

/// The calling thread's, as cudaThreadExchangeStreamCaptureMode sets it.
cudaStreamCaptureMode& thread_capture_mode();

/// Before calls on a stream that cannot be captured: throws and invalidates if the stream captures, or is the legacy
/// stream of others that do.
void require_not_capturing(stream& where);

/// Before cudaDeviceSynchronize and others that concern all streams of a device.
void require_none_capturing(const std::vector<std::shared_ptr<capture>>& active);

/// cudaEventRecordWithFlags and cudaStreamWaitEvent. The handles are for nodes of graphs.
void record_event(stream& where, cudaEvent_t handle, const std::shared_ptr<event>& what, unsigned flags);
void wait_for_event(stream& where, cudaEvent_t handle, const std::shared_ptr<event>& what, unsigned flags);

}  // namespace hpe::cudart
