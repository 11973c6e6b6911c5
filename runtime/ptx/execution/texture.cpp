// CUDA C++ Programming Guide, "Texture Fetching". As in the hardware, weights of filtering have 8 fractional bits.

#include "runtime/ptx/execution/texture.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/ptx/program/float_format.h"

namespace hpe::ptx {

namespace {

using values = std::array<float, 4>;
using element_position = texture_position<std::int64_t>;

// The result for an integer narrower than 32 bits: extended, or scaled to a fraction.
std::uint32_t narrow_integer(const texture& t, std::int32_t value, float range) {
  return t.to_float ? std::bit_cast<std::uint32_t>(std::fmax(static_cast<float>(value) / range, -1.0F))
                    : static_cast<std::uint32_t>(value);
}

// A channel of an element as raw bits.
std::uint32_t channel_at(const texture& t, const element_position& where, unsigned channel) {
  const unsigned size = t.channel_bytes();
  const auto* const at = static_cast<const std::uint8_t*>(t.data) +
                         (static_cast<std::uint64_t>(where.z) + where.layer) * t.slice +
                         static_cast<std::uint64_t>(where.y) * t.pitch +
                         (static_cast<std::uint64_t>(where.x) * t.channels + channel) * size;
  std::uint32_t raw = 0;
  std::memcpy(&raw, at, size);
  switch (t.format) {
    case texture::element::s16: return narrow_integer(t, static_cast<std::int16_t>(raw), 32767);
    case texture::element::u16: return narrow_integer(t, static_cast<std::int32_t>(raw), 65535);
    case texture::element::s8:
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): the element is signed
      return narrow_integer(t, static_cast<std::int8_t>(raw), 127);
    case texture::element::u8: return narrow_integer(t, static_cast<std::int32_t>(raw), 255);
    case texture::element::f16: return std::bit_cast<std::uint32_t>(static_cast<float>(decode(raw, half_format)));
    default: return raw;
  }
}

// The index that an addressing mode gives for an index outside; -1 for the border.
std::int64_t addressed(std::int64_t i, std::uint64_t size, texture::addressing mode) {
  const auto n = static_cast<std::int64_t>(size);
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case texture::addressing::clamp: return i < 0 ? 0 : n - 1;
    case texture::addressing::wrap: return ((i % n) + n) % n;
    case texture::addressing::mirror: {
      const std::int64_t around = ((i % (2 * n)) + 2 * n) % (2 * n);
      return around < n ? around : 2 * n - 1 - around;
    }
    case texture::addressing::border: break;
  }
  return -1;
}

std::array<std::uint32_t, 4> element_at(const texture& t, element_position where) {
  std::array<std::uint32_t, 4> result{0, 0, 0, t.gives_floats() ? 0x3f800000U : 1U};
  // wrap and mirror exist for normalized coordinates only
  const auto mode = [&](texture::addressing m) {
    return !t.normalized && m != texture::addressing::border ? texture::addressing::clamp : m;
  };
  where.x = addressed(where.x, t.width, mode(t.across));
  where.y = t.height == 0 ? 0 : addressed(where.y, t.height, mode(t.down));
  where.z = t.depth == 0 ? 0 : addressed(where.z, t.depth, mode(t.deep));
  if (where.x < 0 || where.y < 0 || where.z < 0) return t.border;
  where.layer = t.layers == 0 ? 0 : std::min(where.layer, static_cast<std::uint32_t>(t.layers - 1));
  for (unsigned c = 0; c < t.channels; ++c) result[c] = channel_at(t, where, c);
  return result;
}

// The index of the element that contains a coordinate. A coordinate far outside is clamped so that it fits an integer;
// NaN becomes 0.
std::int64_t element_of(float x) {
  constexpr float far = 0x1p40F;
  return std::isnan(x) ? 0 : static_cast<std::int64_t>(std::clamp(std::floor(x), -far, far));
}

struct neighbours {
  std::int64_t first = 0;
  float weight = 0;  // of the second element
};

neighbours between(float x) {
  const float shifted = x - 0.5F, below = std::floor(shifted);
  const float fraction = std::isfinite(shifted) ? shifted - below : 0;
  return {element_of(shifted), std::floor(fraction * 256 + 0.5F) / 256};
}

}  // namespace

std::uint32_t texture::channel_bytes() const {
  switch (format) {
    case element::f32:
    case element::s32:
    case element::u32: return 4;
    case element::f16:
    case element::s16:
    case element::u16: return 2;
    default: return 1;
  }
}

std::array<std::uint32_t, 4> read_texture(const texture& t, const texture_position<float>& where) {
  auto [x, y, z, layer] = where;
  if (t.normalized) {
    x *= static_cast<float>(t.width);
    y *= static_cast<float>(t.height);
    z *= static_cast<float>(t.depth);
  }
  if (!t.linear) return element_at(t, {element_of(x), element_of(y), element_of(z), layer});
  const neighbours across = between(x);
  const neighbours down = t.height == 0 ? neighbours{} : between(y);
  const neighbours deep = t.depth == 0 ? neighbours{} : between(z);
  const auto weight_of = [](const neighbours& pair, bool second) { return second ? pair.weight : 1 - pair.weight; };
  values sum{};
  for (unsigned n = 0; n < 8; ++n) {
    const bool right = (n & 1) != 0, below = (n & 2) != 0, behind = (n & 4) != 0;
    const float weight = weight_of(across, right) * weight_of(down, below) * weight_of(deep, behind);
    if (weight == 0) continue;
    const auto part = element_at(
        t, {across.first + (right ? 1 : 0), down.first + (below ? 1 : 0), deep.first + (behind ? 1 : 0), layer});
    for (unsigned c = 0; c < 4; ++c) sum[c] += weight * std::bit_cast<float>(part[c]);
  }
  return {std::bit_cast<std::uint32_t>(sum[0]), std::bit_cast<std::uint32_t>(sum[1]),
          std::bit_cast<std::uint32_t>(sum[2]), std::bit_cast<std::uint32_t>(sum[3])};
}

std::array<std::uint32_t, 4> fetch_texture(const texture& t, const texture_position<std::int32_t>& where) {
  const auto lies_in = [](std::int32_t i, std::uint64_t size) {
    return i >= 0 && (size == 0 || static_cast<std::uint64_t>(i) < size);
  };
  if (!lies_in(where.x, t.width) || !lies_in(where.y, t.height) || !lies_in(where.z, t.depth)) return {};
  return element_at(t, {where.x, where.y, where.z, where.layer});
}

}  // namespace hpe::ptx
