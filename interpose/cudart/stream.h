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

#include "interpose/cudart/stream_attributes.h"
#include "interpose/cudart/timeline.h"
#include "interpose/cudart/work.h"

namespace hpe::cudart {

enum class stream_kind {
  legacy,  ///< the default stream of a device: begins after what blocking streams were given before, which wait for it
  blocking,      ///< created without flags, and each thread's default stream
  non_blocking,  ///< takes no part in that
};

class capture;
struct device_order;  // of stream.cpp: what the streams of one device share

/// Work in order, in a thread of its own that starts with the first piece and ends with the last after close(). Knows
/// nothing of devices: it runs functions. Thread safe. Made by device_streams.
class stream : public std::enable_shared_from_this<stream> {
 public:
  stream(std::shared_ptr<device_order> order, stream_kind kind, int device, unsigned flags, int priority);

  /// Announces work and queues it behind all earlier work of this stream, what CUDA's rules about default streams say,
  /// and `after`. Returns the device's sticky error, if there is one, and cudaErrorNotPermitted inside a host function.
  /// end (may be null) becomes the point where the work has finished.
  cudaError_t enqueue(work piece, std::vector<point> after = {}, point* end = nullptr);

  /// Queues a function of the program that runs even after a sticky error, which it is given (else cudaSuccess).
  /// Whatever it does is no error.
  cudaError_t enqueue_always(std::function<void(cudaError_t)> piece);

  /// Waits for everything queued so far (and for what that waits for), or tells whether it has finished
  /// (cudaErrorNotReady). Returns the device's sticky error. cudaErrorNotPermitted inside a host function.
  cudaError_t synchronize();
  cudaError_t query();

  /// Behind everything that was queued so far; for the legacy stream that is blocking streams' work too.
  std::vector<point> last_points();

  /// No work will be queued any more; what is queued goes on.
  void close();
  bool closed() const;

  cudaError_t fault() const;  ///< the device's sticky error, or cudaSuccess
  int device() const { return device_; }
  stream_kind kind() const { return kind_; }
  unsigned flags() const { return flags_; }
  int priority() const { return priority_; }  ///< as asked for; threads of the host have none
  stream_attributes& attributes() { return attributes_; }
  std::uint64_t id() const { return id_; }  ///< of this process, never used again

  /// What stream capture keeps here; null while the stream does not capture. See capture.h.
  std::shared_ptr<capture> capturing() const;
  void set_capturing(std::shared_ptr<capture> value);

  /// Captures of blocking streams, if this is their legacy stream: work in it would become part of them by the rules
  /// about default streams, which CUDA does not allow.
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

  mutable std::mutex mutex_;  // taken with order's mutex held, never the other way round
  std::condition_variable changed_;
  std::deque<piece_of_work> queue_;
  std::uint64_t queued_ = 0;  // pieces so far
  bool running_ = false;      // there is a thread
  bool closed_ = false;
  std::shared_ptr<capture> capture_;
  stream_attributes attributes_;
};

/// The streams of one device. Thread safe. Its end closes all of them; their work goes on.
class device_streams {
 public:
  explicit device_streams(int device, announce_work announce = {});
  ~device_streams();
  device_streams(const device_streams&) = delete;
  device_streams& operator=(const device_streams&) = delete;

  std::shared_ptr<stream> legacy() const { return legacy_; }
  std::shared_ptr<stream> per_thread();  ///< the calling thread's default stream, which lives as long as the thread
  std::shared_ptr<stream> create(unsigned flags, int priority);

  /// Everything queued so far in any stream, destroyed ones too.
  cudaError_t synchronize();

  std::vector<std::shared_ptr<capture>> captures();  ///< under way in streams of this device

  cudaError_t fault() const;     ///< the sticky error, or cudaSuccess
  void fail(cudaError_t error);  ///< makes it the sticky error, unless there is one

 private:
  const int device_;
  const std::shared_ptr<device_order> order_;
  const std::shared_ptr<stream> legacy_;
};

/// Host functions and callbacks of streams run inside one of these; CUDA calls are not permitted there.
class host_function_scope {
 public:
  host_function_scope();
  ~host_function_scope();
  host_function_scope(const host_function_scope&) = delete;
  host_function_scope& operator=(const host_function_scope&) = delete;
};
bool in_host_function();

}  // namespace hpe::cudart
