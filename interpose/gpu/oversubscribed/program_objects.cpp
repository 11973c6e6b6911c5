#include "interpose/gpu/oversubscribed/program_objects.h"

#include <algorithm>

#include "runtime/base/interval_map.h"

namespace hpe::cuda_hooks {

void program_objects::add(CUdeviceptr base, std::size_t bytes, unsigned device) {
  const lock_guard lock(mutex_);
  std::size_t& all = bytes_[device];
  objects_[base] = {base, bytes, device, ++made_, false};
  all += bytes;
}

program_objects::removed program_objects::remove(CUdeviceptr base) {
  const lock_guard lock(mutex_);
  removed object = objects_.extract(base);
  if (!object.empty()) bytes_.find(object.mapped().device)->second -= object.mapped().bytes;
  return object;
}

void program_objects::put_back(removed&& object) noexcept {
  const lock_guard lock(mutex_);
  bytes_.find(object.mapped().device)->second += object.mapped().bytes;
  objects_.insert(std::move(object));
}

std::optional<program_object> program_objects::find(CUdeviceptr address) const {
  const shared_lock_guard lock(mutex_);
  const auto found = find_containing(objects_, address, &program_object::bytes);
  return found == objects_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<program_object> program_objects::find_all(const std::vector<CUdeviceptr>& addresses) const {
  std::vector<program_object> result;
  const auto add = [&](const program_object& object) {
    if (std::ranges::find(result, object.base, &program_object::base) == result.end()) result.push_back(object);
  };
  const shared_lock_guard lock(mutex_);
  if (objects_.empty()) return result;
  // Most words are numbers, and most addresses lie in the same object as the address before them.
  const CUdeviceptr begin = objects_.begin()->first;
  const CUdeviceptr end = objects_.rbegin()->first + objects_.rbegin()->second.bytes;
  const program_object* latest = nullptr;
  for (const CUdeviceptr address : addresses) {
    if (address < begin || address >= end) continue;
    if (latest != nullptr && address - latest->base < latest->bytes) continue;
    if (const auto found = find_containing(objects_, address, &program_object::bytes); found != objects_.end())
      add(*(latest = &found->second));
  }
  if (!any_for_every_launch()) return result;
  for (const auto& [base, object] : objects_)
    if (object.for_every_launch) add(object);
  return result;
}

void program_objects::add_textures(program_use& use) const {
  if (!any_for_every_launch()) return;
  for (const program_object& texture : find_all({})) use.add(texture, HPE_IN);
}

std::vector<program_object> program_objects::on(unsigned device) const {
  std::vector<program_object> result;
  const shared_lock_guard lock(mutex_);
  for (const auto& [base, object] : objects_)
    if (object.device == device) result.push_back(object);
  return result;
}

std::size_t program_objects::bytes_on(unsigned device) const {
  const shared_lock_guard lock(mutex_);
  const auto found = bytes_.find(device);
  return found == bytes_.end() ? 0 : found->second;
}

void program_objects::use_in_every_launch(CUdeviceptr address) {
  const lock_guard lock(mutex_);
  const auto found = find_containing(objects_, address, &program_object::bytes);
  if (found == objects_.end()) return;
  found->second.for_every_launch = true;
  for_every_launch_.store(true, std::memory_order_release);
}

}  // namespace hpe::cuda_hooks
