#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/core/operations/copier.h"

namespace hpe::core {

/// Copies of arrays in the memory of devices that read them whole, for launches over several devices. A replica is an
/// allocation of its own, with the bytes that the array had at its contents_version. Writes do not reach it; it is
/// filled again when a launch next wants it. Thread-safe.
class replicas {
 public:
  replicas(device::device_set& devices, allocator& memory, copier& copies)
      : devices_(devices), memory_(memory), copies_(copies) {}

  /// Keeps a replica's memory: launches hold it until they are queued.
  using hold = std::shared_ptr<std::byte>;

  /// The region's bytes in the memory of a device, as they are now: a replica, or the region itself if the device is
  /// its only home. Nothing is held then. nullptr if the device's memory is too short.
  [[nodiscard]] std::byte* bring(coherence::region& r, unsigned device, std::vector<hold>& holds);
  /// Whether `bring` for each of the devices would find a valid replica, or needs none.
  [[nodiscard]] bool are_valid(const coherence::region& r, const std::vector<unsigned>& on) HPE_REQUIRES(r.mutex);

  /// Frees the replicas of the allocation at p, which is about to be freed.
  void forget(const void* p);
  /// Frees all replicas that no launch is being queued with, after its work; false if there are none.
  bool forget_all();

 private:
  struct replica {
    hold bytes;
    std::uint64_t size = 0;
    std::uint64_t contents = 0;  // the contents_version of the region whose bytes it has
  };
  [[nodiscard]] static bool needs_none(const coherence::region& r, unsigned device) {
    return r.home_set() == std::uint64_t{1} << device;
  }
  [[nodiscard]] hold allocate(std::uint64_t bytes, unsigned device);

  device::device_set& devices_;
  allocator& memory_;
  copier& copies_;
  mutex mutex_;  // taken after the mutexes of regions
  std::map<std::pair<const coherence::region*, unsigned>, replica> all_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::core
