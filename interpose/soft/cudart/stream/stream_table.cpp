#include "interpose/soft/cudart/stream/stream_table.h"

#include <utility>

namespace hpe::cudart {

stream_table::stream_table(int devices, announce_work announce) : announce_(std::move(announce)) {
  for (int device = 0; device < devices; ++device) {
    devices_.push_back(std::make_unique<device_streams>(device, announce_));
  }
}

std::shared_ptr<cudart_stream> stream_table::find(cudaStream_t handle, int device, default_stream zero) {
  const shared_lock_guard lock(mutex_);
  if (handle == cudaStreamLegacy || (handle == nullptr && zero == default_stream::legacy)) {
    return devices_.at(device)->legacy();
  }
  if (handle == cudaStreamPerThread || handle == nullptr) return devices_.at(device)->per_thread();
  return created_.find_or_null(handle);
}

cudaStream_t stream_table::create(int device, unsigned flags, int priority) {
  const lock_guard lock(mutex_);
  return created_.adopt(devices_.at(device)->create(flags, priority));
}

bool stream_table::destroy(cudaStream_t handle) {
  const auto gone = created_.take_or_null(handle);
  if (gone != nullptr) gone->close();
  return gone != nullptr;
}

device_streams& stream_table::of_device(int device) {
  const shared_lock_guard lock(mutex_);
  return *devices_.at(device);
}

void stream_table::reset(int device) {
  const lock_guard lock(mutex_);
  created_.take_if([&](const cudart_stream& each) { return each.device() == device; });
  devices_.at(device) = std::make_unique<device_streams>(device, announce_);
}

}  // namespace hpe::cudart
