#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// The parts of launches that devices other than the program's own may not have finished. Thread-safe.
class unfinished_parts {
  struct state {
    std::uint64_t latest = 0;  // the number of the part that was queued last
    unsigned being_queued = 0;
  };

 public:
  explicit unfinished_parts(const device::cuda::driver& cu) : cu_(cu) {}

  /// Exists while a thread queues a part on a stream of hpe; `context` is the stream's context. The constructor may
  /// throw std::bad_alloc.
  class queuing {
   public:
    queuing(unfinished_parts& of, CUcontext context, CUstream stream);
    ~queuing();
    queuing(const queuing&) = delete;
    queuing& operator=(const queuing&) = delete;

   private:
    unfinished_parts& of_;
    state& its_;
  };

  /// Returns the error of a part that has failed, or success. Lets the driver write the text that the finished parts
  /// have printed: the driver does this only when a thread synchronizes in their context.
  [[nodiscard]] CUresult failure();

 private:
  using place = std::pair<CUcontext, CUstream>;
  [[nodiscard]] state& begin(const place& where);

  const device::cuda::driver& cu_;
  mutex mutex_;
  std::uint64_t queued_ HPE_GUARDED_BY(mutex_) = 0;        // the number of parts so far, on all streams
  std::map<place, state> streams_ HPE_GUARDED_BY(mutex_);  // streams whose last part may not have finished
};

}  // namespace hpe::cuda_hooks
