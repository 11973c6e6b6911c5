#include "runtime/core/operations/replicas.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"

namespace hpe::core {

replicas::hold replicas::allocate(std::uint64_t bytes, unsigned device) {
  std::byte* const made = memory_.allocate(bytes, device);
  const auto free = [this](std::byte* p) {
    try {
      memory_.free(p);
    } catch (const error& e) {
      log(log_level::warn, "the memory of a copy of an array is lost: {}", e.what());
    }
  };
  return {made, free};
}

std::byte* replicas::bring(coherence::region& r, unsigned device, std::vector<hold>& holds) {
  std::uint64_t contents = 0;
  {
    const lock_guard lock(r.mutex);
    if (!r.alive) return nullptr;
    if (needs_none(r, device)) return r.layout.base;
    contents = r.contents_version();
  }
  const std::uint64_t bytes = r.layout.bytes;
  replica wanted;
  {
    const lock_guard lock(mutex_);
    if (const auto found = all_.find({&r, device}); found != all_.end()) wanted = found->second;
  }
  try {
    if (wanted.bytes == nullptr || wanted.size != bytes) {
      // A replica uses only free memory. It must not make hpe evict data of allocations.
      if (devices_.at(device).memory().free < bytes + granule_size) return nullptr;
      wanted = {allocate(bytes, device), bytes, 0};
    }
    if (wanted.contents != contents) {
      // The copy runs on the devices after launches that read the replica's old bytes. It reads the region as a launch
      // does, so a later write by the host faults and changes the region's contents_version.
      copies_.copy(wanted.bytes.get(), r.layout.base, bytes);
      wanted.contents = contents;
      replica before = wanted;  // destroyed after the mutex is released
      const lock_guard lock(mutex_);
      std::swap(all_[{&r, device}], before);
    }
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    log(log_level::info, "device {} has no memory for a copy of {} bytes of an array: {}", device, bytes, e.what());
    return nullptr;
  }
  holds.push_back(wanted.bytes);
  return wanted.bytes.get();
}

bool replicas::are_valid(const coherence::region& r, const std::vector<unsigned>& on) {
  const lock_guard lock(mutex_);
  if (all_.empty()) return false;
  return std::all_of(on.begin(), on.end(), [&](unsigned device) HPE_NO_THREAD_SAFETY_ANALYSIS {
    if (needs_none(r, device)) return true;
    const auto found = all_.find({&r, device});
    return found != all_.end() && found->second.contents == r.contents_version();
  });
}

void replicas::forget(const void* p) {
  std::vector<replica> ending;  // destroyed after the mutex is released
  {
    const lock_guard lock(mutex_);
    if (all_.empty()) return;
  }
  const allocation what = memory_.find(p);
  const lock_guard lock(mutex_);
  for (unsigned d = 0; what.region != nullptr && d < devices_.size(); ++d) {
    if (const auto found = all_.find({what.region, d}); found != all_.end()) {
      ending.push_back(std::move(found->second));
      all_.erase(found);
    }
  }
}

bool replicas::forget_all() {
  std::map<std::pair<const coherence::region*, unsigned>, replica> ending;
  const lock_guard lock(mutex_);
  ending.swap(all_);
  return !ending.empty();
}

}  // namespace hpe::core
