#pragma once

/// Surfaces: bytes of a texture's memory, read and written where they lie.

#include "runtime/ptx/texture.h"

namespace hpe::ptx {

/// What becomes of an access outside of a surface: the kernel ends, it goes to the nearest place inside, or it reads
/// zeros and writes nothing.
enum class surface_boundary : std::uint8_t { trap, clamp, zero };

/// Where an access of so many bytes lies, x in bytes from the beginning of a row; null outside, unless it is clamped
/// and a row has that many bytes. A layer that is not there is outside.
[[nodiscard]] std::uint8_t* find_in_surface(const texture& surface, texture_position<std::int32_t> where,
                                            std::uint32_t bytes, surface_boundary outside);

/// A channel of a formatted store: 32 bits, an integer of the format's sign or a float, as the format has it. Integers
/// outside its range become its least or greatest.
[[nodiscard]] std::uint32_t to_channel(texture::element format, std::uint32_t value);

}  // namespace hpe::ptx
