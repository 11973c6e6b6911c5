#pragma once

/// The CUDA driver of soft devices, in programs that `hpe run --cuda soft` has started.

#include <optional>

#include "hpe/hpe.h"

namespace hpe::core {

class soft_cuda {
 public:
  /// Returns this driver if the process has it.
  [[nodiscard]] static std::optional<soft_cuda> find();

  /// Calls function(stream, argument) in the calling thread with a stream of the driver, and queues the work that the
  /// function has queued there when it has returned. Throws HPE_ERROR_LAUNCH_FAILED.
  void enqueue(unsigned device, hpeEnqueueFunction function, void* argument) const;

 private:
  // Defined in interpose/soft/libcuda/enqueue.cpp. Returns null, or the name of the driver's error.
  using enqueue_function = const char*(unsigned device, hpeEnqueueFunction function, void* argument, int* result);

  explicit soft_cuda(enqueue_function* enqueue) : enqueue_(enqueue) {}

  enqueue_function* enqueue_;
};

}  // namespace hpe::core
