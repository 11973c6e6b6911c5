#pragma once

/// Textures: reads of elements in one to three dimensions, or of layers of one or two, as a texture object describes
/// them.

#include <array>
#include <cstdint>

namespace hpe::ptx {

/// What a texture object's or a surface object's handle is the address of. Surfaces need the memory and its form only.
struct texture {
  enum class addressing : std::uint8_t { wrap, clamp, mirror, border };  // the order of cudaTextureAddressMode
  enum class element : std::uint8_t { f32, s32, u32, f16, s16, u16, s8, u8 };

  void* data = nullptr;
  std::uint64_t width = 0, height = 0;  // in elements of all channels; height 0: one dimension
  std::uint64_t pitch = 0;              // bytes from row to row
  std::uint64_t depth = 0;              // 0: no third dimension
  std::uint64_t layers = 0;             // 0: not layered
  std::uint64_t slice = 0;              // bytes from one plane or layer to the next
  std::uint32_t channels = 1;
  element format = element::f32;
  addressing across = addressing::clamp, down = addressing::clamp, deep = addressing::clamp;
  bool linear = false;                    // filtered
  bool normalized = false;                // coordinates from 0 to 1
  bool to_float = false;                  // integers read as fractions of their range
  std::array<std::uint32_t, 4> border{};  // what reads outside give, as raw values

  [[nodiscard]] bool gives_floats() const { return format == element::f32 || format == element::f16 || to_float; }

  [[nodiscard]] std::uint32_t channel_bytes() const;
  [[nodiscard]] std::uint64_t row_bytes() const { return width * channels * channel_bytes(); }
};

/// Where an access goes. What the object has not counts as 0.
template <class T>
struct texture_position {
  T x = 0, y = 0, z = 0;
  std::uint32_t layer = 0;
};

/// The four channels as raw 32-bit values; absent ones read as 0, and 1 in the fourth. A layer beyond the last reads as
/// the last.
[[nodiscard]] std::array<std::uint32_t, 4> read_texture(const texture& t, const texture_position<float>& where);
/// Without filtering or addressing. Outside: zeros.
[[nodiscard]] std::array<std::uint32_t, 4> fetch_texture(const texture& t, const texture_position<std::int32_t>& where);

}  // namespace hpe::ptx
