#pragma once

#include <list>
#include <memory>
#include <optional>

#include "interpose/adopted_pointers.h"
#include "interpose/gpu/work/context_parts.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Maps allocations of other processes of this machine into contexts of this process; each allocation is mapped at most
/// once into each context. hpe removes a mapping if the other process has allocated other memory at the same address,
/// if the context may end, or if there are more than `most` mappings and this mapping is the least recently used one.
/// Thread safe.
class peer_memory {
 public:
  explicit peer_memory(const device::cuda::driver& cu) : cu_(cu) {}

  static constexpr std::size_t most = 256;  ///< the largest number of mappings

  /// An allocation of another process, mapped into a context. The destructor unmaps it.
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

  /// Maps the memory into a context, or returns the existing mapping. Returns nullptr if the driver cannot map the
  /// memory into this context. After a failure, which hpe logs once, later calls return nullptr at once.
  std::shared_ptr<mapping> open(const interpose::peer_bytes& which, const std::shared_ptr<context_parts>& parts);

  /// Removes all mappings. To be called before contexts may be destroyed, because the mappings end with their contexts.
  void clear() noexcept;

 private:
  struct cached_mapping {
    interpose::peer_bytes which;
    CUcontext context;
    std::shared_ptr<mapping> mapped;  // nullptr: the driver cannot map the allocation
  };

  const device::cuda::driver& cu_;
  mutex mutex_;
  std::list<cached_mapping> entries_ HPE_GUARDED_BY(mutex_);  // the most recently used mapping first
};

}  // namespace hpe::cuda_hooks
