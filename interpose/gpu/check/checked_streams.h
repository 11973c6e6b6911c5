#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "interpose/gpu/hooks/program_steps.h"
#include "runtime/base/thread_safety.h"
#include "runtime/check/checker.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Describes the program's streams and events to the checker as lines (runtime/check/order.h), which contain the order
/// of work that the program demands. Work in a captured stream does not run, so hpe does not report it. Thread-safe.
class checked_streams {
 public:
  /// Both arguments must outlive the object.
  checked_streams(check::checker& to, const device::cuda::driver& cu) : checker_(to), cu_(cu) {}

  /// Reports work that the program has queued on a stream, which must not be captured. The stream is named as in
  /// device_call. Null is an unknown stream, whose work counts as work of the legacy default stream.
  std::shared_ptr<const check::checked_work> queue(CUstream on, const check::queued_kind& kind,
                                                   const std::shared_ptr<const check::call_place>& place);
  void order(const order_step& step, const std::shared_ptr<const check::call_place>& place);
  void ends(CUstream stream);
  /// To be called when CPU code has waited for all work of the program.
  void waited_for_all();
  [[nodiscard]] bool is_captured(CUstream stream) const;

 private:
  enum class kind : std::uint8_t { legacy, blocking, non_blocking };
  struct stream {
    std::uint32_t line = 0;
    std::uint64_t id = 0;
    CUcontext of = nullptr;
    kind how = kind::blocking;
    std::vector<check::past_ptr> after{};  // the work for which the next work of the stream waits
    bool after_unknown = false;
  };
  /// A context's legacy stream, and the streams whose work waits for work of the legacy stream, and the reverse.
  struct context {
    int number = 0;
    std::vector<std::uint32_t> legacy, blocking;
  };
  struct event {
    check::past_ptr recorded;
    bool is_shared = false;
  };

  [[nodiscard]] CUcontext current() const;
  stream& find(CUstream given) HPE_REQUIRES(mutex_);
  context& find(CUcontext given) HPE_REQUIRES(mutex_);
  [[nodiscard]] std::vector<std::uint32_t> lines_before(const stream& of) HPE_REQUIRES(mutex_);
  std::shared_ptr<const check::checked_work> queue_on(stream& on, const check::queued_kind& kind,
                                                      const std::shared_ptr<const check::call_place>& place)
      HPE_REQUIRES(mutex_);
  void wait_for(const stream& waited) HPE_REQUIRES(mutex_);

  check::checker& checker_;
  const device::cuda::driver& cu_;
  mutex mutex_;
  /// For a default stream, the key contains the context, and for a per-thread default stream also the thread.
  struct key {
    CUstream handle = nullptr;
    CUcontext of = nullptr;
    ::pid_t thread = 0;
    auto operator<=>(const key&) const = default;
  };
  std::map<key, stream> streams_ HPE_GUARDED_BY(mutex_);
  std::map<CUcontext, context> contexts_ HPE_GUARDED_BY(mutex_);
  std::map<CUevent, event> events_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
