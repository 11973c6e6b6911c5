#pragma once

/// Textures: reads of elements in one to three dimensions, or in layers of one or two, as a texture object
/// describes.

#include <array>
#include <cstdint>

namespace hpe::ptx {

/// The data at the address that is the handle of a texture or surface object. Surfaces use only the memory and its
/// layout.
struct texture {
  enum class addressing : std::uint8_t { wrap, clamp, mirror, border };  // the order of cudaTextureAddressMode
  enum class element : std::uint8_t { f32, s32, u32, f16, s16, u16, s8, u8 };

  void* data = nullptr;
  std::uint64_t width = 0, height = 0;  // in elements of all channels; height 0: one-dimensional
  std::uint64_t pitch = 0;              // bytes from row to row
  std::uint64_t depth = 0;              // 0: no third dimension
  std::uint64_t layers = 0;             // 0: not layered
  std::uint64_t slice = 0;              // bytes from one plane or layer to the next
  std::uint32_t channels = 1;
  element format = element::f32;
  addressing across = addressing::clamp, down = addressing::clamp, deep = addressing::clamp;
  bool linear = false;                    // filtered
  bool normalized = false;                // coordinates from 0 to 1
  bool to_float = false;                  // integers are read as fractions of their range
  std::array<std::uint32_t, 4> border{};  // the raw values of reads outside

  [[nodiscard]] bool gives_floats() const { return format == element::f32 || format == element::f16 || to_float; }

  [[nodiscard]] std::uint32_t channel_bytes() const;
  [[nodiscard]] std::uint64_t row_bytes() const { return width * channels * channel_bytes(); }
};

/// The position of an access. Coordinates that the object does not have are 0.
template <class T>
struct texture_position {
  T x = 0, y = 0, z = 0;
  std::uint32_t layer = 0;
};

/// Reads the four channels as raw 32-bit values; missing channels are 0, but the fourth is 1. A layer beyond the last
/// is read as the last.
[[nodiscard]] std::array<std::uint32_t, 4> read_texture(const texture& t, const texture_position<float>& where);
/// Reads without filtering or addressing mode. Positions outside give zeros.
[[nodiscard]] std::array<std::uint32_t, 4> fetch_texture(const texture& t, const texture_position<std::int32_t>& where);

}  // namespace hpe::ptx
