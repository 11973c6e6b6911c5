#pragma once

#include <driver_types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/cudart/stream/stream_attributes.h"
#include "interpose/cudart/stream/timeline.h"
#include "interpose/cudart/stream/work.h"

namespace hpe::cudart {

enum class stream_kind {
  legacy,  ///< a device's default stream: waits for earlier work of blocking streams, and their later work waits for it
  blocking,      ///< created without flags, or a thread's default stream
  non_blocking,  ///< does not synchronize with the legacy stream
};

class capture;
struct device_order;  // defined in stream.cpp: shared by the streams of one device

/// A stream: work that runs in order, in a thread that starts with the first piece and ends after close() and the last
/// piece. It knows nothing of devices; it runs functions. Thread safe. Made by device_streams.
class stream : public std::enable_shared_from_this<stream> {
 public:
  stream(std::shared_ptr<device_order> order, stream_kind kind, int device, unsigned flags, int priority);

  /// Announces work and queues it after all earlier work of this stream, after the work that CUDA's rules on default
  /// streams name, and after `after`. Returns the device's sticky error, if there is one, and cudaErrorNotPermitted
  /// inside a host function; cudaErrorOperatingSystem, with a line on standard error, if the system has no room for the
  /// stream's thread. *end (end may be null) becomes the point at which the work has finished.
  cudaError_t enqueue(work piece, std::vector<point> after = {}, point* end = nullptr);

  /// Queues a function that runs even after a sticky error; its argument is that error, or cudaSuccess. Nothing that
  /// the function does is an error.
  cudaError_t enqueue_always(std::function<void(cudaError_t)> piece);

  /// synchronize() waits for everything queued so far; query() returns cudaErrorNotReady unless it has finished. Both
  /// return the device's sticky error, and cudaErrorNotPermitted inside a host function.
  cudaError_t synchronize();
  cudaError_t query();

  /// Points that are reached when all work queued so far has finished; for the legacy stream also that of blocking
  /// streams.
  std::vector<point> last_points();

  /// No more work may be queued. Queued work still runs.
  void close();
  bool closed() const;

  cudaError_t fault() const;  ///< the device's sticky error, or cudaSuccess
  int device() const { return device_; }
  stream_kind kind() const { return kind_; }
  unsigned flags() const { return flags_; }
  int priority() const { return priority_; }  ///< as requested; host threads have no priorities
  stream_attributes& attributes() { return attributes_; }
  std::uint64_t id() const { return id_; }  ///< unique in this process, never reused

  /// The stream's capture, or null while the stream is not capturing. See capture.h.
  std::shared_ptr<capture> capturing() const;
  void set_capturing(std::shared_ptr<capture> value);

  /// If this is a legacy stream, the captures of its device's blocking streams: work in the legacy stream would become
  /// part of them by the rules on default streams, which CUDA forbids.
  std::vector<std::shared_ptr<capture>> captures_in_the_way();

 private:
  friend class device_streams;
  friend struct device_order;
  struct piece_of_work {
    std::vector<point> after;
    std::function<void()> run;
  };

  cudaError_t push(std::function<void()> run, std::vector<point> after, point* end);
  void run_queue();

  const std::shared_ptr<device_order> order_;
  const stream_kind kind_;
  const int device_;
  const unsigned flags_;
  const int priority_;
  const std::uint64_t id_;
  const std::shared_ptr<timeline> line_ = std::make_shared<timeline>();

  mutable std::mutex mutex_;  // acquired after the mutex of order_, never before
  std::condition_variable changed_;
  std::deque<piece_of_work> queue_;
  std::uint64_t queued_ = 0;  // number of pieces so far
  bool running_ = false;      // the thread exists
  bool closed_ = false;
  std::shared_ptr<capture> capture_;
  stream_attributes attributes_;
};

/// The streams of one device. Thread safe. The destructor closes all of them; queued work still runs.
class device_streams {
 public:
  explicit device_streams(int device, announce_work announce = {});
  ~device_streams();
  device_streams(const device_streams&) = delete;
  device_streams& operator=(const device_streams&) = delete;

  std::shared_ptr<stream> legacy() const { return legacy_; }
  std::shared_ptr<stream> per_thread();  ///< the calling thread's default stream, which lives as long as the thread
  std::shared_ptr<stream> create(unsigned flags, int priority);

  /// Waits for everything queued so far in any stream, including destroyed ones.
  cudaError_t synchronize();

  std::vector<std::shared_ptr<capture>> captures();  ///< in progress in streams of this device

  cudaError_t fault() const;     ///< the sticky error, or cudaSuccess
  void fail(cudaError_t error);  ///< sets the sticky error, unless there is one

 private:
  const int device_;
  const std::shared_ptr<device_order> order_;
  const std::shared_ptr<stream> legacy_;
};

/// Exists while a host function or callback of a stream runs in this thread; CUDA calls are not permitted there.
class host_function_scope {
 public:
  host_function_scope();
  ~host_function_scope();
  host_function_scope(const host_function_scope&) = delete;
  host_function_scope& operator=(const host_function_scope&) = delete;
};
bool in_host_function();

}  // namespace hpe::cudart
