#pragma once

/// Surfaces: reads and writes of bytes in a texture's memory, without filtering.

#include "runtime/ptx/execution/textures/texture.h"

namespace hpe::ptx {

/// The effect of an access outside of a surface: `trap` stops the kernel, `clamp` accesses the nearest position inside,
/// and `zero` reads zeros and writes nothing.
enum class surface_boundary : std::uint8_t { trap, clamp, zero };

/// Returns the address for an access of `bytes` bytes; null if the access is outside of the surface and not clamped, or
/// larger than a row. where.x is in bytes from the beginning of a row. An access to a layer that does not exist is
/// outside.
[[nodiscard]] std::uint8_t* find_in_surface(const texture& surface, texture_position<std::int32_t> where,
                                            std::uint32_t bytes, surface_boundary outside);

/// Converts a channel of a formatted store to the surface's format. `value` contains the bits of a float for a float
/// format, otherwise a 32-bit integer of the format's signedness. Integers outside of the format's range become the
/// least or greatest value of the range.
[[nodiscard]] std::uint32_t to_channel(texture::element format, std::uint32_t value);

}  // namespace hpe::ptx
