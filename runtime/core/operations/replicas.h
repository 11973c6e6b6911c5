#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/core/operations/copier.h"

namespace hpe::core {

/// Replicas of arrays, for launches on several devices: a replica is a copy of a whole array in the memory of a device
/// that reads the array. A replica is a separate allocation. It contains the bytes that the array had at one
/// contents_version of the array. Later writes to the array do not change the replica; it is filled again when a launch
/// needs it. Thread-safe.
class replicas {
 public:
  replicas(device::device_set& devices, allocator& memory, copier& copies)
      : devices_(devices), memory_(memory), copies_(copies) {}

  /// Keeps the memory of a replica alive; a launch keeps the holds of its replicas until it is queued.
  using hold = std::shared_ptr<std::byte>;

  /// Returns the address of a valid copy of the region in the memory of a device: the address of a replica, or of the
  /// region itself if the device is the region's only home. For a replica, adds its hold to `holds`. Returns nullptr if
  /// the device has too little free memory.
  [[nodiscard]] std::byte* bring(coherence::region& r, unsigned device, std::vector<hold>& holds);
  /// Whether each of the devices has a valid replica or needs none.
  [[nodiscard]] bool are_valid(const coherence::region& r, const std::vector<unsigned>& on) HPE_REQUIRES(r.mutex);

  /// Frees the replicas of the allocation at p. Must be called before the allocation is freed.
  void forget(const void* p);
  /// Waits for the work that uses replicas and frees all replicas, except those of a launch that is being queued.
  /// Returns false if it has freed no replica.
  bool forget_all();

 private:
  struct replica {
    hold bytes;
    std::uint64_t size = 0;
    std::uint64_t contents = 0;  // the contents_version of the region at which the bytes were copied
  };
  [[nodiscard]] static bool needs_none(const coherence::region& r, unsigned device) {
    return r.home_set() == std::uint64_t{1} << device;
  }
  [[nodiscard]] hold allocate(std::uint64_t bytes, unsigned device);

  device::device_set& devices_;
  allocator& memory_;
  copier& copies_;
  mutex mutex_;  // locked after the mutexes of regions
  std::map<std::pair<const coherence::region*, unsigned>, replica> all_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::core
