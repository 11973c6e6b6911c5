#pragma once

#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/spread/planner.h"

namespace hpe::core {

/// Decides how launches over one list of devices are cut, from where arrays lie, and moves arrays. Thread-safe.
class launch_planner {
 public:
  launch_planner(device::device_set& devices, allocator& memory, std::vector<unsigned> list);

  struct plan {
    std::vector<spread::block_range> parts;  // of each device of the list
    std::string reason;
  };
  /// Moves arrays if that pays, and says which blocks each device runs.
  [[nodiscard]] plan decide(const spread::kernel_model& kernel, const spread::launch& launch);
  void forget(const spread::kernel_model& kernel);

 private:
  struct described {
    std::uint64_t version = 0;
    spread::allocation what;
  };
  [[nodiscard]] const spread::allocation* describe(const void* pointer) HPE_REQUIRES(mutex_);
  void describe_homes(const coherence::region& r, spread::allocation& to) const HPE_REQUIRES(r.mutex);
  void move(const spread::allocation& what, const spread::placement& to);

  allocator& memory_;
  const std::vector<unsigned> list_;
  mutex mutex_;
  spread::planner planner_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<const coherence::region*, described> described_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::core
