#pragma once

/// The devices of the process: their properties, and the settings that the program has made for them.

#include <driver_types.h>

#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

/// Thread-safe.
class device_table {
 public:
  /// Starts hpe. Throws hpe::error.
  device_table();

  [[nodiscard]] int count() const noexcept { return static_cast<int>(properties_.size()); }

  /// Throws cudaErrorInvalidDevice unless a device has this number.
  void require_device(int device) const;

  /// Returns the hpe devices that the program sees as this device: one device or, if the process spreads its kernels,
  /// several.
  [[nodiscard]] std::vector<int> behind(int device) const;

  [[nodiscard]] const cudaDeviceProp& properties(int device) const;

  /// Throws cudaErrorInvalidValue for an attribute that CUDA does not define.
  [[nodiscard]] int attribute(cudaDeviceAttr attribute, int device) const;

  [[nodiscard]] std::size_t limit(int device, cudaLimit limit) const;
  /// Throws cudaErrorUnsupportedLimit, or cudaErrorInvalidValue for a value that is out of range.
  void set_limit(int device, cudaLimit limit, std::size_t value);

  [[nodiscard]] bool can_reach(int device, int peer) const;
  /// Whether the program has enabled peer access of kernels on `device` to the memory of `peer`.
  [[nodiscard]] bool peer_enabled(int device, int peer) const;
  /// Enables or disables peer access. Returns whether the call has changed the setting.
  bool set_peer(int device, int peer, bool enabled);

  [[nodiscard]] unsigned flags(int device) const;
  void set_flags(int device, unsigned flags);

  [[nodiscard]] cudaFuncCache cache_config(int device) const;
  void set_cache_config(int device, cudaFuncCache config);

  /// Resets a device to the initial settings.
  void reset(int device);

 private:
  struct settings {
    std::map<cudaLimit, std::size_t> limits;
    unsigned flags = cudaDeviceScheduleAuto;
    cudaFuncCache cache = cudaFuncCachePreferNone;
  };

  int behind_first_ = 1;
  std::vector<cudaDeviceProp> properties_;
  std::vector<std::uint64_t> reachable_;  // for each device: a bit for each peer that it can access
  mutable mutex mutex_;
  std::vector<settings> settings_ HPE_GUARDED_BY(mutex_);
  std::set<std::pair<int, int>> peers_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cudart
