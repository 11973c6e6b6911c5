// Implements the PTX ISA, section "Surface Instructions".

#include "runtime/ptx/execution/textures/surface.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "runtime/ptx/program/float_format.h"

namespace hpe::ptx {

namespace {

// Clamps a coordinate to the range from 0 to `last`. Returns false if the coordinate was outside of the range and
// `clamps` is false.
bool place(std::int32_t& at, std::uint64_t last, bool clamps) {
  if (at >= 0 && static_cast<std::uint64_t>(at) <= last) return true;
  at = at < 0 ? 0 : static_cast<std::int32_t>(last);
  return clamps;
}

std::uint64_t last_of(std::uint64_t size) { return size == 0 ? 0 : size - 1; }

template <class Narrow>
std::uint32_t narrowed(std::uint32_t value) {
  using wide = std::conditional_t<std::is_signed_v<Narrow>, std::int32_t, std::uint32_t>;
  using limits = std::numeric_limits<Narrow>;
  return static_cast<std::uint32_t>(std::clamp<wide>(static_cast<wide>(value), limits::min(), limits::max()));
}

}  // namespace

std::uint8_t* find_in_surface(const texture& surface, texture_position<std::int32_t> where, std::uint32_t bytes,
                              surface_boundary outside) {
  const bool clamps = outside == surface_boundary::clamp;
  if (bytes > surface.row_bytes()) return nullptr;
  auto layer = static_cast<std::int32_t>(where.layer);
  const bool inside = place(where.x, surface.row_bytes() - bytes, clamps) &&
                      place(where.y, last_of(surface.height), clamps) &&
                      place(where.z, last_of(surface.depth), clamps) && place(layer, last_of(surface.layers), clamps);
  if (!inside) return nullptr;
  return static_cast<std::uint8_t*>(surface.data) +
         (static_cast<std::uint64_t>(where.z) + static_cast<std::uint64_t>(layer)) * surface.slice +
         static_cast<std::uint64_t>(where.y) * surface.pitch + static_cast<std::uint64_t>(where.x);
}

std::uint32_t to_channel(texture::element format, std::uint32_t value) {
  switch (format) {
    case texture::element::s16: return narrowed<std::int16_t>(value);
    case texture::element::u16: return narrowed<std::uint16_t>(value);
    case texture::element::s8: return narrowed<std::int8_t>(value);
    case texture::element::u8: return narrowed<std::uint8_t>(value);
    case texture::element::f16:
      return static_cast<std::uint32_t>(encode(std::bit_cast<float>(value), half_format, rounding::nearest_even));
    default: return value;
  }
}

}  // namespace hpe::ptx
