#pragma once

/// Surfaces: direct reads and writes of bytes in a texture's memory.

#include "runtime/ptx/execution/textures/texture.h"

namespace hpe::ptx {

/// What an access outside of a surface does: it stops the kernel, or it uses the nearest position inside, or it reads
/// zeros and writes nothing.
enum class surface_boundary : std::uint8_t { trap, clamp, zero };

/// Returns the address for an access of `bytes` bytes. The coordinate where.x is in bytes from the beginning of a row.
/// Null if the access is outside of the surface and not clamped, or larger than a row. An access to a layer that does
/// not exist is outside.
[[nodiscard]] std::uint8_t* find_in_surface(const texture& surface, texture_position<std::int32_t> where,
                                            std::uint32_t bytes, surface_boundary outside);

/// Converts a channel of a formatted store to the surface's format. `value` is a 32-bit integer, signed if the format
/// is, or a float. Integers outside of the format's range become its least or greatest value.
[[nodiscard]] std::uint32_t to_channel(texture::element format, std::uint32_t value);

}  // namespace hpe::ptx
