#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "interpose/adopted_pointers.h"
#include "interpose/cuda/context_parts.h"

namespace hpe::cuda_hooks {

/// Allocations of other processes of this machine, mapped in the contexts of this one. An allocation is mapped once and
/// kept; it goes when its process has another one at the same address, when its context here ends, or when it has not
/// been used for the longest time and there are too many. Any thread.
class peer_memory {
 public:
  explicit peer_memory(const device::cuda::driver& cu) : cu_(cu) {}

  static constexpr std::size_t most = 256;  ///< mappings

  /// An allocation that is mapped as long as somebody has it.
  class mapping {
   public:
    /// Throws what the driver refuses.
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

  /// The memory, mapped in a context; empty where this process cannot have it there, which is remembered and told in
  /// the log.
  std::shared_ptr<mapping> open(const interpose::peer_bytes& which, const std::shared_ptr<context_parts>& parts);

  /// Contexts may end, and mappings with them.
  void clear() noexcept;

 private:
  struct entry {
    interpose::peer_bytes which;
    CUcontext context;
    std::shared_ptr<mapping> mapped;  // empty: it cannot be
  };

  const device::cuda::driver& cu_;
  std::mutex mutex_;
  std::list<entry> entries_;  // the one that was used last is first
};

}  // namespace hpe::cuda_hooks
