// CUDA C++ Programming Guide, "Texture Fetching". The weights of filtering have 8 bits of fraction, as in the hardware.

#include "runtime/ptx/texture.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace hpe::ptx {

namespace {

using values = std::array<float, 4>;

unsigned bytes_of(texture::element e) {
  switch (e) {
    case texture::element::f32:
    case texture::element::s32:
    case texture::element::u32: return 4;
    case texture::element::s16:
    case texture::element::u16: return 2;
    default: return 1;
  }
}

// A channel as raw bits; integers narrower than 32 bits are widened, or scaled to a fraction.
std::uint32_t channel_at(const texture& t, std::int64_t x, std::int64_t y, unsigned channel) {
  const unsigned size = bytes_of(t.format);
  const auto* const at = static_cast<const std::uint8_t*>(t.data) + y * static_cast<std::int64_t>(t.pitch) +
                         (x * t.channels + channel) * size;
  std::uint32_t raw = 0;
  std::memcpy(&raw, at, size);
  std::int32_t value = 0;
  float range = 1;
  switch (t.format) {
    case texture::element::s16:
      value = static_cast<std::int16_t>(raw);
      range = 32767;
      break;
    case texture::element::u16:
      value = static_cast<std::int32_t>(raw);
      range = 65535;
      break;
    case texture::element::s8:
      value = static_cast<std::int8_t>(raw);  // NOLINT(bugprone-signed-char-misuse): the element is signed
      range = 127;
      break;
    case texture::element::u8:
      value = static_cast<std::int32_t>(raw);
      range = 255;
      break;
    default: return raw;
  }
  return t.to_float ? std::bit_cast<std::uint32_t>(std::fmax(static_cast<float>(value) / range, -1.0F))
                    : static_cast<std::uint32_t>(value);
}

// The element's number that an address mode makes of one outside; -1 for the border.
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

std::array<std::uint32_t, 4> element_at(const texture& t, std::int64_t x, std::int64_t y) {
  const bool floats = t.format == texture::element::f32 || t.to_float;
  std::array<std::uint32_t, 4> result{0, 0, 0, floats ? 0x3f800000U : 1U};
  // wrap and mirror exist for normalized coordinates only
  const auto mode = [&](texture::addressing m) {
    return !t.normalized && m != texture::addressing::border ? texture::addressing::clamp : m;
  };
  x = addressed(x, t.width, mode(t.across));
  y = t.height == 0 ? 0 : addressed(y, t.height, mode(t.down));
  if (x < 0 || y < 0) return {};
  for (unsigned c = 0; c < t.channels; ++c) result[c] = channel_at(t, x, y, c);
  return result;
}

struct position {
  std::int64_t first;
  float weight;  // of the second
};

position between(float x) {
  const float shifted = x - 0.5F, below = std::floor(shifted);
  return {static_cast<std::int64_t>(below), std::floor((shifted - below) * 256 + 0.5F) / 256};
}

}  // namespace

std::array<std::uint32_t, 4> read_texture(const texture& t, float x, float y) {
  if (t.normalized) {
    x *= static_cast<float>(t.width);
    y *= static_cast<float>(t.height);
  }
  if (!t.linear)
    return element_at(t, static_cast<std::int64_t>(std::floor(x)), static_cast<std::int64_t>(std::floor(y)));
  const position across = between(x), down = t.height == 0 ? position{0, 0} : between(y);
  values sum{};
  for (unsigned n = 0; n < 4; ++n) {
    const float weight =
        ((n & 1) != 0 ? across.weight : 1 - across.weight) * ((n & 2) != 0 ? down.weight : 1 - down.weight);
    if (weight == 0) continue;
    const auto part = element_at(t, across.first + (n & 1), down.first + (n >> 1));
    for (unsigned c = 0; c < 4; ++c) sum[c] += weight * std::bit_cast<float>(part[c]);
  }
  return {std::bit_cast<std::uint32_t>(sum[0]), std::bit_cast<std::uint32_t>(sum[1]),
          std::bit_cast<std::uint32_t>(sum[2]), std::bit_cast<std::uint32_t>(sum[3])};
}

std::array<std::uint32_t, 4> fetch_texture(const texture& t, std::int32_t x, std::int32_t y) {
  if (x < 0 || static_cast<std::uint64_t>(x) >= t.width || y < 0 ||
      (t.height != 0 && static_cast<std::uint64_t>(y) >= t.height))
    return {};
  return element_at(t, x, y);
}

}  // namespace hpe::ptx
