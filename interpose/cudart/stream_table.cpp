#include "interpose/cudart/stream_table.h"

#include <mutex>
#include <utility>

namespace hpe::cudart {

stream_table::stream_table(int devices, announce_work announce) : announce_(std::move(announce)) {
  for (int device = 0; device < devices; ++device) {
    devices_.push_back(std::make_unique<device_streams>(device, announce_));
  }
}

std::shared_ptr<stream> stream_table::find(cudaStream_t handle, int device, default_stream zero) {
  const std::shared_lock lock(mutex_);
  if (handle == cudaStreamLegacy || (handle == nullptr && zero == default_stream::legacy)) {
    return devices_.at(device)->legacy();
  }
  if (handle == cudaStreamPerThread || handle == nullptr) return devices_.at(device)->per_thread();
  const auto found = created_.find(handle);
  return found == created_.end() ? nullptr : found->second;
}

cudaStream_t stream_table::create(int device, unsigned flags, int priority) {
  const std::unique_lock lock(mutex_);
  auto made = devices_.at(device)->create(flags, priority);
  auto* const handle = reinterpret_cast<cudaStream_t>(made.get());
  created_.emplace(handle, std::move(made));
  return handle;
}

bool stream_table::destroy(cudaStream_t handle) {
  const std::unique_lock lock(mutex_);
  const auto found = created_.find(handle);
  if (found == created_.end()) return false;
  found->second->close();
  created_.erase(found);
  return true;
}

device_streams& stream_table::of_device(int device) {
  const std::shared_lock lock(mutex_);
  return *devices_.at(device);
}

void stream_table::reset(int device) {
  const std::unique_lock lock(mutex_);
  std::erase_if(created_, [&](const auto& each) { return each.second->device() == device; });
  devices_.at(device) = std::make_unique<device_streams>(device, announce_);
}

}  // namespace hpe::cudart
