#pragma once

#include <list>
#include <memory>
#include <optional>

#include "interpose/adopted_pointers.h"
#include "interpose/cuda/work/context_parts.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Allocations of other processes of this machine, mapped in contexts of this process, once in each context.
/// Its mapping is removed when the other process has a new allocation at the same address, when the context ends, or
/// when there are too many mappings and this one is the least recently used. Thread safe.
class peer_memory {
 public:
  explicit peer_memory(const device::cuda::driver& cu) : cu_(cu) {}

  static constexpr std::size_t most = 256;  ///< mappings

  /// A mapped allocation. The destructor unmaps it.
  class mapping {
   public:
    /// Throws hpe::error if the driver refuses.
    mapping(const device::cuda::driver& cu, const interpose::peer_bytes& which, std::shared_ptr<context_parts> parts);
    ~mapping();
    mapping(const mapping&) = delete;
    mapping& operator=(const mapping&) = delete;
    [[nodiscard]] CUdeviceptr base() const noexcept { return base_; }

   private:
    friend class peer_memory;
    const device::cuda::driver& cu_;
    const interpose::peer_bytes which_;
    const std::shared_ptr<context_parts> parts_;
    CUdeviceptr base_ = 0;
  };

  /// The memory, mapped in a context; nullptr if the driver cannot map it there. The failure is logged once and
  /// remembered.
  std::shared_ptr<mapping> open(const interpose::peer_bytes& which, const std::shared_ptr<context_parts>& parts);

  /// Contexts may end, and their mappings with them: forgets all mappings.
  void clear() noexcept;

 private:
  struct entry {
    interpose::peer_bytes which;
    CUcontext context;
    std::shared_ptr<mapping> mapped;  // nullptr: the driver cannot map it
  };

  const device::cuda::driver& cu_;
  mutex mutex_;
  std::list<entry> entries_ HPE_GUARDED_BY(mutex_);  // most recently used first
};

}  // namespace hpe::cuda_hooks
