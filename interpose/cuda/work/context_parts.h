#pragma once

#include <map>
#include <memory>
#include <vector>

#include "interpose/cuda/copies/pinned_ring.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// hpe's streams and pinned buffers in one context of the program, each made at its first use. When a context ends,
/// they end with it, and another context may get its handle; alive() detects this. Thread safe.
class context_parts {
 public:
  /// Throws hpe::error if the driver refuses.
  context_parts(const device::cuda::driver& cu, CUcontext context);
  /// Waits for work that uses the parts, if the context still exists.
  ~context_parts();
  context_parts(const context_parts&) = delete;
  context_parts& operator=(const context_parts&) = delete;

  /// Whether the context in which this object was made still exists; if not, nothing in it does.
  [[nodiscard]] bool alive() const noexcept;
  [[nodiscard]] CUcontext context() const noexcept { return context_; }

  /// Lends an idle stream that is not ordered with any of the program's streams. To be given back once all work is
  /// queued.
  [[nodiscard]] CUstream lend_stream();
  void give_back(CUstream lent);
  [[nodiscard]] pinned_ring& ring();

 private:
  [[nodiscard]] std::uint64_t number() const noexcept;

  const device::cuda::driver& cu_;
  const CUcontext context_;
  std::uint64_t number_ = 0;
  CUevent witness_ = nullptr;  // never recorded; dies with the context
  mutex mutex_;
  std::vector<CUstream> streams_ HPE_GUARDED_BY(mutex_);  // all of them
  std::vector<CUstream> free_ HPE_GUARDED_BY(mutex_);     // may have work left
  std::unique_ptr<pinned_ring> ring_ HPE_GUARDED_BY(mutex_);
};

/// A stream of a context, lent for the lifetime of the object.
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

/// The parts of each context. Thread safe.
class contexts {
 public:
  explicit contexts(const device::cuda::driver& cu) : cu_(cu) {}

  /// Makes the parts at the first call, and again if another context has the handle now. Throws hpe::error if the
  /// driver refuses.
  std::shared_ptr<context_parts> of(CUcontext context);

  /// To be called when a context may end: releases all parts. Work in progress keeps its parts until it is done.
  void clear();

 private:
  const device::cuda::driver& cu_;
  mutex mutex_;
  std::map<CUcontext, std::shared_ptr<context_parts>> parts_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
