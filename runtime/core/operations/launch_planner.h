#pragma once

#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/core/operations/replicas.h"
#include "runtime/spread/planner.h"

namespace hpe::core {

/// Decides how launches over one list of devices are cut, from where arrays lie, and moves arrays. Thread-safe.
class launch_planner {
 public:
  launch_planner(device::device_set& devices, allocator& memory, replicas& copies, std::vector<unsigned> list);

  /// A pointer that a device's launch gets in place of the program's: to the device's own copy of the array.
  struct replaced_pointer {
    std::uint32_t offset = 0;  // in the parameters
    std::byte* pointer = nullptr;
  };
  struct plan {
    std::vector<spread::block_range> parts;                // of each device of the list
    std::vector<std::vector<replaced_pointer>> replacing;  // of each device of the list
    std::vector<replicas::hold> holds;                     // to be kept until the launch is queued
    std::string reason;
  };
  /// Moves and copies arrays if that pays, and says which blocks each device runs.
  [[nodiscard]] plan decide(const spread::kernel_model& kernel, const spread::launch& launch);
  void forget(const spread::kernel_model& kernel);

 private:
  struct described {
    std::uint64_t version = 0;
    std::uint64_t homes = 0;      // the region's homes_version
    bool has_no_replica = false;  // memory was too short, with these homes
    spread::allocation what;
  };
  [[nodiscard]] const spread::allocation* describe(const void* pointer) HPE_REQUIRES(mutex_);
  void describe_homes(const coherence::region& r, spread::allocation& to) const HPE_REQUIRES(r.mutex);
  void move(const spread::allocation& what, const spread::placement& to);
  void replicate(const spread::kernel_model::pointer& of, const spread::launch& launch, plan& to) HPE_REQUIRES(mutex_);

  allocator& memory_;
  replicas& replicas_;
  const std::vector<unsigned> list_;
  mutex mutex_;
  spread::planner planner_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<const coherence::region*, described> described_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::core
