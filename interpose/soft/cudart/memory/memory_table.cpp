// Allocations do not overlap. So only one allocation can contain a given address: the one with the greatest base that
// is not above the address.

#include "interpose/soft/cudart/memory/memory_table.h"

#include <algorithm>
#include <mutex>

#include "interpose/soft/cudart/check/checked_memory.h"
#include "runtime/base/interval_map.h"

namespace hpe::cudart {

namespace {

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

void memory_table::add(const cudart_allocation& made) {
  cudart_allocation entry = made;
  if (entry.device_base == nullptr) entry.device_base = entry.base;
  bool is_new = false;
  {
    const lock_guard lock(mutex_);
    // The entry may exist, because the flags of pool memory can change.
    cudart_allocation& place = allocations_[number(entry.base)];
    is_new = place.base == nullptr;
    entry.id = is_new ? ++added_ : place.id;
    if (!is_new && place.is_for_other_devices()) --for_other_devices_;
    if (entry.is_for_other_devices()) ++for_other_devices_;
    place = entry;
  }
  if (is_new) tell_added(entry);
}

std::optional<cudart_allocation> memory_table::remove(const void* base) {
  cudart_allocation entry;
  {
    const std::lock_guard nobody_keeps(kept_);
    const lock_guard lock(mutex_);
    const auto found = allocations_.find(number(base));
    if (found == allocations_.end()) return std::nullopt;
    entry = found->second;
    allocations_.erase(found);
    if (entry.is_for_other_devices()) --for_other_devices_;
  }
  tell_removed(entry);
  return entry;
}

std::optional<cudart_allocation> memory_table::find(const void* address) const {
  const shared_lock_guard lock(mutex_);
  const auto found = find_containing(allocations_, number(address), &cudart_allocation::size);
  return found != allocations_.end() ? std::optional(found->second) : std::nullopt;
}

std::optional<cudart_allocation> memory_table::find_also_of_hpe(const void* address) const {
  if (auto found = find(address)) return found;
  hpePointerInfo info{};
  const bool answers = ::hpeGetPointerInfo(address, &info) == HPE_SUCCESS;
  if (!answers || (info.kind != HPE_MEMORY_DEVICE && info.kind != HPE_MEMORY_STRIPED)) return std::nullopt;
  return cudart_allocation{.base = info.base,
                           .size = info.size,
                           .kind = allocation_kind::managed,
                           .device = info.device,
                           .device_base = info.base};
}

bool memory_table::is_empty() const {
  const shared_lock_guard lock(mutex_);
  return std::none_of(allocations_.begin(), allocations_.end(),
                      [](const auto& each) { return each.second.device >= 0; });
}

std::vector<cudart_allocation> memory_table::remove_all(int device) {
  std::vector<cudart_allocation> removed;
  {
    const lock_guard lock(mutex_);
    for (auto it = allocations_.begin(); it != allocations_.end();) {
      if (it->second.device == device) {
        removed.push_back(it->second);
        if (it->second.is_for_other_devices()) --for_other_devices_;
        it = allocations_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const cudart_allocation& each : removed) tell_removed(each);
  return removed;
}

}  // namespace hpe::cudart
