#pragma once

#include <driver_types.h>

#include <memory>

#include "interpose/soft/cudart/stream/cudart_stream.h"

namespace hpe::cudart {

/// An operation that a stream can run and a graph node can contain: a launch, a copy, a memset or a host function. An
/// operation owns copies of all arguments of the call, including the kernel's arguments, and does not change.
class stream_operation {
 public:
  stream_operation() : place_(place_of_call()) {}
  virtual ~stream_operation() = default;
  stream_operation(const stream_operation&) = delete;
  stream_operation& operator=(const stream_operation&) = delete;

  virtual cudaGraphNodeType type() const = 0;

  /// Checks whether the device can run the operation, and sets `out` to the work for a stream's thread. The work can
  /// run any number of times. An error that this function returns, such as cudaErrorInvalidConfiguration, is the result
  /// of the program's call and does not become a sticky error.
  virtual cudaError_t prepare(int device, stream_task& out) const = 0;

  /// Returns the work for one launch of a graph on a stream, if this work differs from the prepared work; otherwise
  /// empty work. The thread that launches the graph calls begin() for the graph's nodes in order.
  virtual stream_task begin(cudart_stream& where) const;

  /// The place where the program made the operation; null if the program is not checked.
  const std::shared_ptr<const check::call_place>& place() const { return place_; }

 protected:
  /// Sets the place to the call of the function that nvcc makes for launches of a kernel.
  void set_place_of_launch(const void* function) {
    if (place_) place_ = std::make_shared<const check::call_place>(place_->outside_of(function));
  }

 private:
  std::shared_ptr<const check::call_place> place_;
};

/// Queues an operation on a stream or, if the stream is being captured, adds a graph node. Each stream-ordered function
/// finally calls submit or, if its work cannot be captured, require_not_capturing (capture.h) and
/// cudart_stream::enqueue. Reports errors by the result or by a `failure`.
cudaError_t submit(cudart_stream& where, std::shared_ptr<const stream_operation> what);

}  // namespace hpe::cudart
