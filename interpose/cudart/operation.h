#pragma once

#include <driver_types.h>

#include <memory>

#include "interpose/cudart/stream.h"

namespace hpe::cudart {

/// Something that a program asks a stream to do and that can be a node of a graph too: a launch, a copy, a memset, a
/// host function. It has its own copy of everything that the call was given (kernel arguments too), and never changes.
class operation {
 public:
  operation() = default;
  virtual ~operation() = default;
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;

  virtual cudaGraphNodeType type() const = 0;

  /// Checks the operation against a device and makes what a stream's thread executes, any number of times. The error is
  /// one that the call itself returns (cudaErrorInvalidConfiguration), not a sticky one.
  virtual cudaError_t prepare(int device, work& out) const = 0;

  /// What one launch of a graph in a stream executes, if that is not what was prepared. Called in the graph's order by
  /// the thread that launches. An empty function: what was prepared.
  virtual work begin(stream& where) const;
};

/// Gives an operation to a stream: a node where the stream captures, else work behind all earlier work. Every
/// stream-ordered entry of the library ends here, or in stream::enqueue for what cannot be captured (behind
/// require_not_capturing of capture.h). Returns the error or throws failure.
cudaError_t submit(stream& where, std::shared_ptr<const operation> what);

}  // namespace hpe::cudart
