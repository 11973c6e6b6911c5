#pragma once

#include <driver_types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "interpose/soft/cudart/stream/checked_work.h"
#include "interpose/soft/cudart/stream/stream_attributes.h"
#include "interpose/soft/cudart/stream/stream_task.h"
#include "interpose/soft/cudart/stream/stream_timeline.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

enum class stream_kind {
  legacy,    ///< a device's default stream; work on it waits for earlier work on blocking streams, and the other way
             ///< round
  blocking,  ///< a stream created without flags, or the default stream of a thread
  non_blocking,  ///< a stream that does not synchronize with the legacy stream
};

class capture;
struct device_order;  // shared by the streams of one device; defined in cudart_stream.cpp

/// A stream: runs tasks in order, in a thread that starts when the first task is queued and ends when close() has been
/// called and the last task has run. A stream does not use devices itself; it only calls functions. Thread safe. Only
/// device_streams constructs streams.
class cudart_stream : public std::enable_shared_from_this<cudart_stream> {
 public:
  cudart_stream(std::shared_ptr<device_order> order, stream_kind kind, int device, unsigned flags, int priority);
  ~cudart_stream();
  cudart_stream(const cudart_stream&) = delete;
  cudart_stream& operator=(const cudart_stream&) = delete;

  /// Announces a task and queues it. The task runs after all earlier work of this stream, after the work on other
  /// streams for which CUDA's rules on default streams require it to wait, and after the points `after` are reached.
  /// Returns the device's sticky error, if it has one, and cudaErrorNotPermitted inside a host function. Returns
  /// cudaErrorOperatingSystem, and writes a line to standard error, if the system cannot start the stream's thread.
  /// Sets *end, unless `end` is null, to the point that is reached when the work has finished.
  /// `place`: the place in the program, for the checker; null: that of the call in progress.
  cudaError_t enqueue(stream_task task, std::vector<point> after = {}, point* end = nullptr,
                      std::shared_ptr<const check::call_place> place = nullptr);

  /// Queues a function that runs even after a sticky error. The argument of the function is the sticky error, or
  /// cudaSuccess. Returns errors like enqueue(), except the sticky error.
  cudaError_t enqueue_always(std::function<void(cudaError_t)> task);

  /// synchronize() waits for all work queued so far; query() returns cudaErrorNotReady if some of this work has not
  /// finished. Both return the device's sticky error if it has one, and cudaErrorNotPermitted inside a host function.
  cudaError_t synchronize();
  cudaError_t query();
  /// Like synchronize(), for calls that return when their work has ended although CUDA does not promise it: for the
  /// checker, the program has not waited.
  cudaError_t finish();

  /// Returns points that are reached when all work queued so far has finished; for the legacy stream, this includes the
  /// work of blocking streams.
  std::vector<point> last_points();

  /// After this call, no more work may be queued. Work that is already queued runs.
  void close();
  bool closed() const;

  cudaError_t fault() const;  ///< the device's sticky error, or cudaSuccess
  int device() const { return device_; }
  stream_kind kind() const { return kind_; }
  unsigned flags() const { return flags_; }
  int priority() const { return priority_; }  ///< the priority that the program requested; it has no effect
  /// For the checker: what is ordered before the end of the work queued so far; work without a task.
  check::past_ptr last_past() const;
  std::shared_ptr<const check::checked_work> queue_without_task();

  stream_attributes& attributes() { return attributes_; }
  std::uint64_t id() const { return id_; }  ///< unique in this process, not reused

  /// Returns the capture to which the stream belongs; null if the stream is not being captured. See capture.h.
  std::shared_ptr<capture> capturing() const;
  void set_capturing(std::shared_ptr<capture> value);

  /// If this is a legacy stream, returns the captures of its device's blocking streams; otherwise an empty list. By the
  /// rules on default streams, work on the legacy stream would become a part of these captures, which CUDA forbids.
  std::vector<std::shared_ptr<capture>> captures_in_the_way();

 private:
  friend class device_streams;
  friend struct device_order;
  struct queued_task {
    std::vector<point> after;
    std::function<void()> run;
    std::shared_ptr<const check::checked_work> checked;  // null: the program is not checked
  };

  cudaError_t push(std::function<void()> run, std::vector<point> after, point* end, const task_memory_uses& uses,
                   std::shared_ptr<const check::call_place> place);
  void run_queue();
  /// Returns what a program knows to have ended after a call of synchronize(), if the call is made now.
  std::vector<check::past_ptr> pasts_to_wait_for();

  const std::shared_ptr<device_order> order_;
  const stream_kind kind_;
  const int device_;
  const unsigned flags_;
  const int priority_;
  const std::uint64_t id_;
  const std::uint32_t checked_line_;  // the stream's line in the checker
  const std::shared_ptr<stream_timeline> line_ = std::make_shared<stream_timeline>();

  mutable mutex mutex_;  // locked after the mutex of order_, never before it
  condition_variable changed_;
  std::deque<queued_task> queue_ HPE_GUARDED_BY(mutex_);
  std::uint64_t queued_ HPE_GUARDED_BY(mutex_) = 0;  // the number of tasks queued so far
  bool running_ HPE_GUARDED_BY(mutex_) = false;      // whether the stream's thread exists
  bool closed_ HPE_GUARDED_BY(mutex_) = false;
  std::shared_ptr<capture> capture_ HPE_GUARDED_BY(mutex_);
  stream_attributes attributes_;
};

/// The streams of one device. Thread safe. The destructor closes all streams; work that is already queued runs.
class device_streams {
 public:
  explicit device_streams(int device, announce_work announce = {});
  ~device_streams();
  device_streams(const device_streams&) = delete;
  device_streams& operator=(const device_streams&) = delete;

  std::shared_ptr<cudart_stream> legacy() const { return legacy_; }
  std::shared_ptr<cudart_stream>
  per_thread();  ///< the calling thread's default stream, which exists until the thread ends
  std::shared_ptr<cudart_stream> create(unsigned flags, int priority);

  /// Waits for all work queued so far on any stream, including destroyed streams. Returns the sticky error or
  /// cudaSuccess; inside a host function, returns cudaErrorNotPermitted without waiting.
  cudaError_t synchronize();
  /// Like synchronize(), but for the checker, the program has not waited.
  void finish();

  std::vector<std::shared_ptr<capture>> captures();  ///< the captures that are in progress on streams of this device

  cudaError_t fault() const;     ///< the sticky error, or cudaSuccess
  void fail(cudaError_t error);  ///< sets the sticky error, unless the device already has one

 private:
  const int device_;
  const std::shared_ptr<device_order> order_;
  const std::shared_ptr<cudart_stream> legacy_;
};

/// Exists while this thread runs a host function or a callback of a stream, which must not make CUDA calls.
class host_function_scope {
 public:
  host_function_scope();
  ~host_function_scope();
  host_function_scope(const host_function_scope&) = delete;
  host_function_scope& operator=(const host_function_scope&) = delete;
};
bool in_host_function();

}  // namespace hpe::cudart
