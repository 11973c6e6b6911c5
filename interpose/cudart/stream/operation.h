#pragma once

#include <driver_types.h>

#include <memory>

#include "interpose/cudart/stream/stream.h"

namespace hpe::cudart {

/// An operation that a stream can run and a graph node can hold: a launch, a copy, a memset, a host function. It owns
/// copies of all arguments of the call (kernel arguments too) and never changes.
class operation {
 public:
  operation() = default;
  virtual ~operation() = default;
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;

  virtual cudaGraphNodeType type() const = 0;

  /// Checks the operation against a device and makes the work for a stream's thread, which can run any number of times.
  /// An error (cudaErrorInvalidConfiguration) is the result of the call, not a sticky error.
  virtual cudaError_t prepare(int device, work& out) const = 0;

  /// The work for one launch of a graph in a stream, if it differs from the prepared work; an empty function if it does
  /// not. Called by the launching thread, in the order of the graph's nodes.
  virtual work begin(stream& where) const;
};

/// Queues an operation in a stream; if the stream is capturing, adds a graph node instead. Every stream-ordered
/// function ends here or, if it cannot be captured, in stream::enqueue after require_not_capturing of capture.h.
/// Returns the error or throws failure.
cudaError_t submit(stream& where, std::shared_ptr<const operation> what);

}  // namespace hpe::cudart
