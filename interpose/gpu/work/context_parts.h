#pragma once

#include <map>
#include <memory>
#include <vector>

#include "interpose/gpu/copies/pinned_ring.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Owns hpe's streams and pinned buffers in one context of the program, and creates each of them at its first use. When
/// the context ends, the driver destroys the streams and buffers, too. A later context may have the same handle;
/// alive() detects this. Thread safe.
class context_parts {
 public:
  /// Throws hpe::error if the driver refuses.
  context_parts(const device::cuda::driver& cu, CUcontext context);
  /// If the context exists, waits for the work that uses the streams and buffers, and destroys them.
  ~context_parts();
  context_parts(const context_parts&) = delete;
  context_parts& operator=(const context_parts&) = delete;

  /// Whether the context for which this object was constructed exists. If not, its streams and buffers do not exist
  /// either.
  [[nodiscard]] bool alive() const noexcept;
  [[nodiscard]] CUcontext context() const noexcept { return context_; }

  /// Lends a stream that is not ordered with any stream of the program. The caller must call give_back() when it has
  /// queued all its work on the stream.
  [[nodiscard]] CUstream lend_stream();
  void give_back(CUstream lent) noexcept;
  [[nodiscard]] pinned_ring& ring();

 private:
  [[nodiscard]] std::uint64_t number() const noexcept;

  const device::cuda::driver& cu_;
  const CUcontext context_;
  std::uint64_t number_ = 0;
  CUevent witness_ = nullptr;  // never recorded; ends with the context, so that alive() can detect the end
  mutex mutex_;
  std::vector<CUstream> streams_ HPE_GUARDED_BY(mutex_);  // all streams that this object has created
  std::vector<CUstream> free_ HPE_GUARDED_BY(mutex_);     // the streams that are not lent; may have unfinished work
  std::unique_ptr<pinned_ring> ring_ HPE_GUARDED_BY(mutex_);
};

/// Lends a stream of a context for the lifetime of the object.
class lent_stream {
 public:
  explicit lent_stream(context_parts& from) : from_(from), stream_(from.lend_stream()) {}
  ~lent_stream() { from_.give_back(stream_); }
  lent_stream(const lent_stream&) = delete;
  lent_stream& operator=(const lent_stream&) = delete;
  [[nodiscard]] CUstream stream() const noexcept { return stream_; }

 private:
  context_parts& from_;
  CUstream stream_;
};

/// The table of the context_parts of all contexts. Thread safe.
class contexts {
 public:
  explicit contexts(const device::cuda::driver& cu) : cu_(cu) {}

  /// Returns the parts of a context. Constructs new parts at the first call for a handle, and when a new context has
  /// received the same handle. Throws hpe::error if the driver refuses.
  std::shared_ptr<context_parts> of(CUcontext context);

  /// To be called before a context may be destroyed. Releases all parts; work in progress owns the parts that it uses
  /// until it is done.
  void clear();

 private:
  const device::cuda::driver& cu_;
  mutex mutex_;
  std::map<CUcontext, std::shared_ptr<context_parts>> parts_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
