#pragma once

/// The CUDA driver of soft devices, in programs that `hpe run --cuda soft` has started.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "hpe/hpe.h"
#include "runtime/base/error.h"

namespace hpe::core {

class soft_cuda {
 public:
  /// Returns this driver if the process has it.
  [[nodiscard]] static std::optional<soft_cuda> find();

  /// Calls function(stream, argument) in the calling thread with a stream of the driver, and queues the work that the
  /// function has queued there when it has returned. If the program is checked (HPE_CHECK), the driver compares the
  /// work's accesses with `accesses`, in allocations with bytes of these. The work is announced (hpe/announce.h), with
  /// `homes` and `accesses`. Throws HPE_ERROR_LAUNCH_FAILED.
  void enqueue(unsigned device, hpeEnqueueFunction function, void* argument, std::uint64_t homes,
               std::span<const hpeAccess> accesses) const;
  /// Waits for the work that enqueue() has queued on a device (device < 0: on all `count` devices). Returns
  /// HPE_ERROR_LAUNCH_FAILED if work of a device has failed.
  [[nodiscard]] static std::optional<error> wait(int device, unsigned count);

 private:
  // Defined in interpose/soft/libcuda/enqueue.cpp. They return null, or the name of the driver's error.
  using enqueue_function = const char*(unsigned device, hpeEnqueueFunction function, void* argument,
                                       std::uint64_t homes, const hpeAccess* accesses, std::size_t count, int* result);
  using synchronize_function = const char*(unsigned device);

  soft_cuda(enqueue_function* enqueue, synchronize_function* synchronize)
      : enqueue_(enqueue), synchronize_(synchronize) {}

  enqueue_function* enqueue_;
  synchronize_function* synchronize_;
};

}  // namespace hpe::core
