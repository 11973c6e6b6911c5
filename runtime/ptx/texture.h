#pragma once

/// Textures: reads of floats from linear memory and from rows of memory, as a texture object describes them.

#include <array>
#include <cstdint>

namespace hpe::ptx {

/// A texture object's handle is the address of one of these.
struct texture {
  enum class addressing : std::uint8_t { wrap, clamp, mirror, border };  // the order of cudaTextureAddressMode
  enum class element : std::uint8_t { f32, s32, u32, s16, u16, s8, u8 };

  const void* data = nullptr;
  std::uint64_t width = 0, height = 0;  // in elements of all channels; height 0: one dimension
  std::uint64_t pitch = 0;              // bytes from row to row
  std::uint32_t channels = 1;
  element format = element::f32;
  addressing across = addressing::clamp, down = addressing::clamp;
  bool linear = false;      // filtered
  bool normalized = false;  // coordinates from 0 to 1
  bool to_float = false;    // integers read as fractions of their range
};

/// The four channels at x (and y) as raw 32-bit values; absent ones read as 0, and 1 in the fourth.
[[nodiscard]] std::array<std::uint32_t, 4> read_texture(const texture& t, float x, float y);
/// Without filtering or addressing: element x of linear memory. Outside: zeros.
[[nodiscard]] std::array<std::uint32_t, 4> fetch_texture(const texture& t, std::int32_t x, std::int32_t y);

}  // namespace hpe::ptx
