#pragma once

#include <cstddef>

namespace hpe {

/// The unit of placement in bytes: the memory that backs addresses changes only at multiples of this size.
inline constexpr std::size_t granule_size = std::size_t{2} << 20;

[[nodiscard]] constexpr std::size_t round_up(std::size_t value, std::size_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace hpe
