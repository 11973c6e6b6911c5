#include "interpose/soft/cudart/device/device_table.h"

#include <fmt/format.h>

#include <span>

#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/device/properties.h"
#include "interpose/soft/cudart/spread/soft_spreading.h"

namespace hpe::cudart {

namespace {

// Returns CUDA's initial value of a limit on GPUs of compute capability 9.0.
std::size_t initial_limit(cudaLimit limit) {
  switch (limit) {
    case cudaLimitStackSize: return 1024;
    case cudaLimitPrintfFifoSize: return std::size_t{7} << 20;
    case cudaLimitMallocHeapSize: return std::size_t{8} << 20;
    case cudaLimitMaxL2FetchGranularity: return 64;
    case cudaLimitPersistingL2CacheSize: return 0;
    case cudaLimitDevRuntimePendingLaunchCount: return 2048;
    default: throw failure(cudaErrorUnsupportedLimit);
  }
}

}  // namespace

device_table::device_table() {
  int count = 0;
  check(::hpeGetDeviceCount(&count));
  for (int device = 0; device < count; ++device) {
    hpeDeviceInfo info{};
    check(::hpeGetDeviceInfo(device, &info));
    properties_.push_back(make_properties(info, device));
    reachable_.push_back(info.peers);
  }
  if (spreads_kernels()) {
    behind_first_ = count;
    for (const cudaDeviceProp& other : std::span(properties_).subspan(1))
      properties_[0].totalGlobalMem += other.totalGlobalMem;
    properties_.resize(1);
    reachable_.assign(1, 0);
  }
  settings_.resize(properties_.size());
}

void device_table::require_device(int device) const {
  require(device >= 0 && device < count(), cudaErrorInvalidDevice);
}

const cudaDeviceProp& device_table::properties(int device) const {
  require_device(device);
  return properties_[device];
}

int device_table::attribute(cudaDeviceAttr attribute, int device) const {
  return read_attribute(properties(device), attribute);
}

std::size_t device_table::limit(int device, cudaLimit limit) const {
  require_device(device);
  const std::size_t initial = initial_limit(limit);
  const lock_guard lock(mutex_);
  const auto& set = settings_[device].limits;
  const auto found = set.find(limit);
  return found == set.end() ? initial : found->second;
}

void device_table::set_limit(int device, cudaLimit limit, std::size_t value) {
  require_device(device);
  const std::size_t initial = initial_limit(limit);
  require(limit != cudaLimitMaxL2FetchGranularity || value <= 128, cudaErrorInvalidValue);
  const lock_guard lock(mutex_);
  settings_[device].limits[limit] = limit == cudaLimitPersistingL2CacheSize ? initial : value;
}

std::vector<int> device_table::behind(int device) const {
  std::vector<int> all{device};
  for (int other = 1; other < behind_first_; ++other) all.push_back(other);
  return all;
}

bool device_table::can_reach(int device, int peer) const {
  require_device(device);
  require_device(peer);
  return device != peer && ((reachable_[device] >> peer) & 1U) != 0;
}

bool device_table::peer_enabled(int device, int peer) const {
  const lock_guard lock(mutex_);
  return peers_.contains({device, peer});
}

bool device_table::set_peer(int device, int peer, bool enabled) {
  const lock_guard lock(mutex_);
  return enabled ? peers_.insert({device, peer}).second : peers_.erase({device, peer}) == 1;
}

unsigned device_table::flags(int device) const {
  require_device(device);
  const lock_guard lock(mutex_);
  return settings_[device].flags;
}

void device_table::set_flags(int device, unsigned flags) {
  require_device(device);
  const lock_guard lock(mutex_);
  settings_[device].flags = flags;
}

cudaFuncCache device_table::cache_config(int device) const {
  require_device(device);
  const lock_guard lock(mutex_);
  return settings_[device].cache;
}

void device_table::set_cache_config(int device, cudaFuncCache config) {
  require_device(device);
  const lock_guard lock(mutex_);
  settings_[device].cache = config;
}

void device_table::reset(int device) {
  const lock_guard lock(mutex_);
  settings_[device] = {};
  std::erase_if(peers_, [device](const auto& pair) { return pair.first == device; });
}

}  // namespace hpe::cudart
