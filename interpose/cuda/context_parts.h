#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/cuda/pinned_ring.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// What hpe has in one context of the program: streams and pinned buffers, each made by its first use. A context that
/// ends takes them along, and another one may get its handle; alive() tells. Any thread.
class context_parts {
 public:
  /// Throws what the driver refuses.
  context_parts(const device::cuda::driver& cu, CUcontext context);
  /// Waits for what uses the parts, if the context is still there.
  ~context_parts();
  context_parts(const context_parts&) = delete;
  context_parts& operator=(const context_parts&) = delete;

  /// Whether the context is still the one in which this was made; if not, everything in it is gone.
  [[nodiscard]] bool alive() const noexcept;
  [[nodiscard]] CUcontext context() const noexcept { return context_; }

  /// A stream that nothing of the program is ordered by, without work; lend it no longer than work is queued on it.
  [[nodiscard]] CUstream lend_stream();
  void give_back(CUstream lent);
  [[nodiscard]] pinned_ring& ring();

 private:
  [[nodiscard]] std::uint64_t number() const noexcept;

  const device::cuda::driver& cu_;
  const CUcontext context_;
  std::uint64_t number_ = 0;
  CUevent witness_ = nullptr;  // never recorded; dies with the context
  std::mutex mutex_;
  std::vector<CUstream> streams_;  // all
  std::vector<CUstream> free_;     // perhaps with work
  std::unique_ptr<pinned_ring> ring_;
};

/// A stream of a context, lent for as long as the object lives.
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

/// The parts of each context. Any thread.
class contexts {
 public:
  explicit contexts(const device::cuda::driver& cu) : cu_(cu) {}

  /// Made by the first call, and anew where the context is another one by now. Throws what the driver refuses.
  std::shared_ptr<context_parts> of(CUcontext context);

  /// A context may end: lets go of everything. What is under way keeps its parts to its end.
  void clear();

 private:
  const device::cuda::driver& cu_;
  std::mutex mutex_;
  std::map<CUcontext, std::shared_ptr<context_parts>> parts_;
};

}  // namespace hpe::cuda_hooks
