#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Pinned buffers of one context, through which its streams exchange data with pageable memory. Any thread.
class pinned_ring {
 public:
  static constexpr std::size_t buffer_bytes = std::size_t{8} << 20;
  static constexpr std::size_t buffer_count = 6;

  /// Throws what the driver refuses.
  pinned_ring(const device::cuda::driver& cu, CUcontext context);
  ~pinned_ring();
  pinned_ring(const pinned_ring&) = delete;
  pinned_ring& operator=(const pinned_ring&) = delete;

  /// Whether its context is still the one in which it was made; if not, everything in it is gone.
  [[nodiscard]] bool alive() const noexcept;

  struct buffer {
    std::byte* data = nullptr;
    CUevent done = nullptr;  ///< recorded behind the copies that use it
  };

  /// A buffer for the caller alone, whose earlier copies may still run: the caller waits for `done`. take waits until
  /// there is one, and its caller holds no other; try_take gives an empty one then.
  [[nodiscard]] buffer take();
  [[nodiscard]] buffer try_take();
  void give_back(buffer used);

 private:
  const device::cuda::driver& cu_;
  const CUcontext context_;
  std::byte* memory_ = nullptr;
  CUevent witness_ = nullptr;  // never recorded; dies with the context
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<buffer> free_;  // the one that was given back first is first
};

/// The ring of each context. Any thread.
class pinned_rings {
 public:
  explicit pinned_rings(const device::cuda::driver& cu) : cu_(cu) {}

  /// Made by the first call; nullptr if there is no memory for it.
  std::shared_ptr<pinned_ring> of(CUcontext context);

  /// A context may end: lets go of everything. Copies that are under way keep theirs to their end.
  void clear();

 private:
  const device::cuda::driver& cu_;
  std::mutex mutex_;
  std::map<CUcontext, std::shared_ptr<pinned_ring>> rings_;
};

}  // namespace hpe::cuda_hooks
