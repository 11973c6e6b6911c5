#pragma once

/// Soft devices with a small address space, set up as in the runtime.

#include <memory>
#include <string>

#include "runtime/memory/uvas.h"
#include "tests/device/layout.h"

namespace transfer_test {

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;
inline constexpr std::size_t mapped = 32 * mib;  // bytes of each device's memory that are mapped

inline constexpr unsigned devices = 2;

class machine {
 public:
  explicit machine(const std::string& specification)
      : space(device_test::layout_base, 256 * mib, devices),
        set(hpe::device::open_devices(specification, space.layout())) {
    space.open_alias(at(0), space.layout().size());
    set->register_host(space.alias(at(0)), space.layout().size(), space.shadow_file(), 0);
    for (unsigned d = 0; d < devices; ++d) set->at(d).map(at(d), mapped);
  }

  [[nodiscard]] std::byte* at(unsigned device, std::size_t offset = 0) const {
    return space.segment_begin(hpe::memory::segment_kind::device, device) + offset;
  }
  [[nodiscard]] std::byte* staging() const {
    return space.alias(space.segment_begin(hpe::memory::segment_kind::runtime));
  }
  void wait(hpe::timepoint point) const { set->wait(point, std::chrono::steady_clock::time_point::max()); }

  hpe::memory::uvas space;
  std::unique_ptr<hpe::device::device_set> set;
};

}  // namespace transfer_test
