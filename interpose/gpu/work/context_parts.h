#pragma once

#include <map>
#include <memory>
#include <vector>

#include "interpose/gpu/copies/pinned_ring.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Owns hpe's streams and pinned buffers in one context of the program. Each stream or buffer is made at its first use.
/// The streams and buffers end together with the context. A later context may have the same handle; alive() detects
/// this. Thread safe.
class context_parts {
 public:
  /// Throws hpe::error if the driver refuses.
  context_parts(const device::cuda::driver& cu, CUcontext context);
  /// If the context still exists, waits for the work that uses the streams and buffers, and destroys them.
  ~context_parts();
  context_parts(const context_parts&) = delete;
  context_parts& operator=(const context_parts&) = delete;

  /// Whether the context for which this object was made still exists; if not, the streams and buffers no longer exist
  /// either.
  [[nodiscard]] bool alive() const noexcept;
  [[nodiscard]] CUcontext context() const noexcept { return context_; }

  /// Lends an idle stream that is not ordered with any stream of the program. give_back() must be called when the
  /// caller has queued all its work on the stream.
  [[nodiscard]] CUstream lend_stream();
  void give_back(CUstream lent) noexcept;
  [[nodiscard]] pinned_ring& ring();

 private:
  [[nodiscard]] std::uint64_t number() const noexcept;

  const device::cuda::driver& cu_;
  const CUcontext context_;
  std::uint64_t number_ = 0;
  CUevent witness_ = nullptr;  // never recorded; is destroyed with the context
  mutex mutex_;
  std::vector<CUstream> streams_ HPE_GUARDED_BY(mutex_);  // all streams that this object has made
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

  /// Returns the parts of a context. Makes them at the first call, and again if the handle now belongs to another
  /// context. Throws hpe::error if the driver refuses.
  std::shared_ptr<context_parts> of(CUcontext context);

  /// To be called before a context may be destroyed: releases all parts. Work in progress keeps the parts that it uses
  /// until it is done.
  void clear();

 private:
  const device::cuda::driver& cu_;
  mutex mutex_;
  std::map<CUcontext, std::shared_ptr<context_parts>> parts_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
