#pragma once

#include <cstddef>
#include <cstdint>

namespace hpe {

/// The address range of the UVAS, hpe's single address space for the host and all devices. All sizes are multiples of
/// the granule.
struct uvas_layout {
  std::uintptr_t base = 0;
  std::size_t segment_size = 0;
  unsigned segments = 0;

  [[nodiscard]] std::size_t size() const noexcept { return segment_size * segments; }
  [[nodiscard]] bool contains(const void* p) const noexcept {
    return reinterpret_cast<std::uintptr_t>(p) - base < size();
  }
};

}  // namespace hpe
