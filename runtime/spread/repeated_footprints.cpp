#include "runtime/spread/repeated_footprints.h"

namespace hpe::spread {

namespace {

std::string key_of(const kernel_model& kernel, const launch& l, std::span<const kernel_array* const> arrays) {
  std::string key;
  kernel.append_key(key, l);
  for (const kernel_array* const each : arrays) append(key, each != nullptr ? each->version : 0);
  return key;
}

std::shared_ptr<const std::vector<used_bytes>> compute(const kernel_model& kernel, const launch& l,
                                                       std::span<const kernel_array* const> arrays) {
  footprint memory(kernel, l, arrays);
  if (!memory.obstacle().empty()) return nullptr;
  auto used = std::make_shared<const std::vector<used_bytes>>(memory.with_overwritten({{{0, 0, 0}, l.grid}}));
  return memory.leaves_arrays() ? nullptr : used;
}

}  // namespace

std::shared_ptr<const std::vector<used_bytes>> repeated_footprints::find(const kernel_model& kernel, const launch& l,
                                                                         std::span<const kernel_array* const> arrays) {
  if (!l.is_possible() || l.parameter_bytes != kernel.analysis().kernel->formals_size) return nullptr;
  const std::string key = key_of(kernel, l, arrays);
  {
    const lock_guard lock(mutex_);
    if (launches_.size() == most_launches && !launches_.contains(key)) launches_.clear();
    const auto [found, is_new] = launches_.try_emplace(key);
    if (is_new || found->second.is_computed) return found->second.used;
  }
  auto used = compute(kernel, l, arrays);
  const lock_guard lock(mutex_);
  if (const auto found = launches_.find(key); found != launches_.end()) found->second = {true, used};
  return used;
}

void repeated_footprints::forget() {
  const lock_guard lock(mutex_);
  launches_.clear();
}

}  // namespace hpe::spread
