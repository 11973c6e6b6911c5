#pragma once

#include "runtime/coherence/region.h"
#include "runtime/device/device.h"
#include "runtime/memory/uvas.h"

namespace hpe::core {

/// What lies behind the addresses of a region, for devices: memory of its homes, or pinned pages of the host. Any
/// thread.
class backing {
 public:
  backing(device::device_set& devices, const memory::uvas& space) : devices_(devices), space_(space) {}

  /// Throws what device::map and register_host throw, with nothing backed.
  void give(const coherence::region_description& what);
  /// The caller has made sure that no queued work uses it.
  void take(const coherence::region_description& what) noexcept;

 private:
  void take_until(const coherence::region_description& what, std::uint64_t end) noexcept;
  /// Where the stretch of one home that begins at a granule ends.
  [[nodiscard]] static std::uint64_t end_of_home(const coherence::region_description& what, std::uint64_t at);
  device::device& home_of(const coherence::region_description& what, std::uint64_t at) const;

  device::device_set& devices_;
  const memory::uvas& space_;
};

}  // namespace hpe::core
