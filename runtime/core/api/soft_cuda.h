#pragma once

/// The CUDA driver of soft devices, in programs that `hpe run --cuda soft` has started.

#include <cstddef>
#include <optional>
#include <span>

#include "hpe/hpe.h"

namespace hpe::core {

class soft_cuda {
 public:
  /// Returns this driver if the process has it.
  [[nodiscard]] static std::optional<soft_cuda> find();

  /// Calls function(stream, argument) in the calling thread with a stream of the driver, and queues the work that the
  /// function has queued there when it has returned. If the program is checked (HPE_CHECK), the driver compares the
  /// work's accesses with `accesses`, in allocations with bytes of these. Throws HPE_ERROR_LAUNCH_FAILED.
  void enqueue(unsigned device, hpeEnqueueFunction function, void* argument, std::span<const hpeAccess> accesses) const;

 private:
  // Defined in interpose/soft/libcuda/enqueue.cpp. Returns null, or the name of the driver's error.
  using enqueue_function = const char*(unsigned device, hpeEnqueueFunction function, void* argument,
                                       const hpeAccess* accesses, std::size_t count, int* result);

  explicit soft_cuda(enqueue_function* enqueue) : enqueue_(enqueue) {}

  enqueue_function* enqueue_;
};

}  // namespace hpe::core
