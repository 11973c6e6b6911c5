#pragma once

#include <cuda.h>

#include <cstddef>
#include <list>

#include "interpose/gpu/oversubscribed/program_objects.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Keeps allocations mapped after the program has freed them, and reuses them for new allocations of the same size,
/// because mapping new memory takes several times as long as an allocation by the driver. Thread-safe.
class freed_memory {
 public:
  /// `most` is the number of bytes of freed allocations that may stay mapped on each device.
  explicit freed_memory(std::size_t most) : most_(most) {}

  /// Returns the kept allocation of this size that was freed last, and removes it from the list. Returns 0 if no
  /// allocation of this size is kept.
  [[nodiscard]] CUdeviceptr take(std::size_t bytes, unsigned device);
  using list = std::list<program_object>;
  /// Keeps an allocation that no work uses. Returns the allocations that the caller must release because they exceed
  /// the limit: keep() visits the device's kept allocations, the one freed last first, and returns each one that does
  /// not fit beside those it has left in the list.
  [[nodiscard]] list keep(list&& one) noexcept;
  /// Adds allocations that keep() or take_all() has returned, but that the caller could not release.
  void put_back(list&& those) noexcept;
  /// Removes all kept allocations and returns them; the caller releases them.
  [[nodiscard]] list take_all() noexcept;
  /// Returns the number of kept bytes on a device.
  [[nodiscard]] std::size_t bytes_on(unsigned device) const;

 private:
  const std::size_t most_;
  mutable mutex mutex_;
  list kept_ HPE_GUARDED_BY(mutex_);  // the allocation that was freed last is first
};

}  // namespace hpe::cuda_hooks
