#pragma once

/// Textures: reads of elements from one or several levels (mipmaps), as a texture object specifies. The elements form
/// an array of one to three dimensions, layers of one or two dimensions, or the faces of a cube.

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/base/function_ref.h"

namespace hpe::ptx {

/// The memory of a texture or surface, or of one level of it.
struct texture_level {
  void* data = nullptr;
  std::uint64_t width = 0, height = 0;  // in elements, each with all its channels; height 0 means one-dimensional
  std::uint64_t pitch = 0;              // the distance between rows, in bytes
  std::uint64_t depth = 0;              // 0 means no third dimension
  std::uint64_t layers = 0;             // 0 means not layered; the faces of a cube are six layers
  std::uint64_t slice = 0;              // the distance between planes or layers, in bytes
};

/// Receives the bytes of each element that the calling thread reads from now on; null: no function. The observer must
/// exist until the next call.
using texel_observer = function_ref<void(const void* at, std::size_t bytes)>;
void set_texel_observer(const texel_observer* observer);

/// A texture or surface object, whose handle is the address of this structure. The base class describes the first
/// level. Surfaces use only the memory and its layout.
struct texture : texture_level {
  static constexpr unsigned most_levels = 18;
  enum class addressing : std::uint8_t { wrap, clamp, mirror, border };  // in the order of cudaTextureAddressMode
  enum class element : std::uint8_t { f32, s32, u32, f16, s16, u16, s8, u8 };

  std::uint32_t channels = 1;
  element format = element::f32;
  addressing across = addressing::clamp, down = addressing::clamp, deep = addressing::clamp;
  bool linear = false;      // whether reads are filtered
  bool normalized = false;  // whether coordinates are from 0 to 1
  bool to_float = false;    // whether reads return integers as fractions of their range
  bool srgb = false;  // whether reads convert the first three channels of these fractions from sRGB to linear values
  bool cube = false;  // whether the layers are faces of a cube, in the order +x, -x, +y, -y, +z, -z
  bool seamless = false;        // whether filters of a cube reach across its edges
  bool between_levels = false;  // whether reads are filtered between two levels
  float level_bias = 0, least_level = 0, greatest_level = 0;
  std::uint32_t levels = 1;
  std::array<texture_level, most_levels - 1> smaller{};  // the levels after the first
  std::array<std::uint32_t, 4> border{};                 // the raw values that reads outside of the texture return

  [[nodiscard]] bool gives_floats() const { return format == element::f32 || format == element::f16 || to_float; }

  [[nodiscard]] std::uint32_t channel_bytes() const;
  [[nodiscard]] std::uint64_t row_bytes() const { return width * channels * channel_bytes(); }
};

/// The position of an access; in a cube, the direction. Coordinates beyond the dimensions of the texture are 0.
template <class T>
struct texture_position {
  T x = 0, y = 0, z = 0;
  std::uint32_t layer = 0;
};

/// Reads the four channels of a texture as raw 32-bit values. Missing channels are 0, except the fourth, which is 1. If
/// where.layer is too large, reads the last layer. `level` is the level of detail without the texture's bias.
[[nodiscard]] std::array<std::uint32_t, 4> read_texture(const texture& t, const texture_position<float>& where,
                                                        float level = 0);
/// Returns the level of detail for derivatives of the coordinates in two directions: the binary logarithm of the larger
/// distance, in elements, between adjacent reads.
[[nodiscard]] float level_of_gradients(const texture& t, const texture_position<float>& where,
                                       const std::array<float, 3>& along, const std::array<float, 3>& down);
/// Reads one channel of the four elements that a filtered read in two dimensions, or in a cube's face, would use, in
/// the order (x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y). If the texture does not have this channel, the values are
/// 0.
[[nodiscard]] std::array<std::uint32_t, 4> gather_texture(const texture& t, const texture_position<float>& where,
                                                          unsigned channel);
/// Reads an element without filtering and without an addressing mode. A read at a position outside the texture returns
/// zeros.
[[nodiscard]] std::array<std::uint32_t, 4> fetch_texture(const texture& t, const texture_position<std::int32_t>& where);

}  // namespace hpe::ptx
