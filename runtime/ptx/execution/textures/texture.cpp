// Implements the CUDA C++ Programming Guide, "Texture Fetching". As in a GPU, filter weights have 8 fractional bits.
// The choice of the mipmap level, the choice of the cube face if two coordinates are equal, and the elements that a
// gather returns are the same as on an H200.

#include "runtime/ptx/execution/textures/texture.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/ptx/program/float_format.h"

namespace hpe::ptx {

namespace {

using element_position = texture_position<std::int64_t>;

// Returns the result for an integer narrower than 32 bits: extended to 32 bits, or scaled to a fraction.
std::uint32_t narrow_integer(const texture& t, std::int32_t value, float range) {
  return t.to_float ? std::bit_cast<std::uint32_t>(std::fmax(static_cast<float>(value) / range, -1.0F))
                    : static_cast<std::uint32_t>(value);
}

thread_local const texel_observer* observes_texels = nullptr;

std::uint32_t linear_of_srgb(std::uint32_t fraction) {
  const float c = std::bit_cast<float>(fraction);
  return std::bit_cast<std::uint32_t>(c <= 0.04045F ? c / 12.92F : std::pow((c + 0.055F) / 1.055F, 2.4F));
}

// Returns a channel of an element as raw bits.
std::uint32_t channel_at(const texture& t, const texture_level& l, const element_position& where, unsigned channel) {
  const unsigned size = t.channel_bytes();
  const auto* const at = static_cast<const std::uint8_t*>(l.data) +
                         (static_cast<std::uint64_t>(where.z) + where.layer) * l.slice +
                         static_cast<std::uint64_t>(where.y) * l.pitch +
                         (static_cast<std::uint64_t>(where.x) * t.channels + channel) * size;
  if (observes_texels != nullptr) (*observes_texels)(at, size);
  std::uint32_t raw = 0;
  std::memcpy(&raw, at, size);
  switch (t.format) {
    case texture::element::s16: return narrow_integer(t, static_cast<std::int16_t>(raw), 32767);
    case texture::element::u16: return narrow_integer(t, static_cast<std::int32_t>(raw), 65535);
    case texture::element::s8:
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): the element is signed
      return narrow_integer(t, static_cast<std::int8_t>(raw), 127);
    case texture::element::u8: {
      const std::uint32_t value = narrow_integer(t, static_cast<std::int32_t>(raw), 255);
      return t.srgb && channel < 3 ? linear_of_srgb(value) : value;
    }
    case texture::element::f16: return std::bit_cast<std::uint32_t>(static_cast<float>(decode(raw, half_format)));
    default: return raw;
  }
}

// Returns the index to which an addressing mode maps index `i`; -1 for the border.
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

using channels_of_element = std::array<std::uint32_t, 4>;

channels_of_element element_inside(const texture& t, const texture_level& l, const element_position& where) {
  channels_of_element result{0, 0, 0, t.gives_floats() ? 0x3f800000U : 1U};
  for (unsigned c = 0; c < t.channels; ++c) result[c] = channel_at(t, l, where, c);
  return result;
}

channels_of_element element_at(const texture& t, const texture_level& l, element_position where) {
  // The modes wrap and mirror are valid only for normalised coordinates.
  const auto mode = [&](texture::addressing m) {
    return !t.normalized && !t.cube && m != texture::addressing::border ? texture::addressing::clamp : m;
  };
  where.x = addressed(where.x, l.width, mode(t.across));
  where.y = l.height == 0 ? 0 : addressed(where.y, l.height, mode(t.down));
  where.z = l.depth == 0 ? 0 : addressed(where.z, l.depth, mode(t.deep));
  if (where.x < 0 || where.y < 0 || where.z < 0) return t.border;
  where.layer = l.layers == 0 ? 0 : std::min(where.layer, static_cast<std::uint32_t>(l.layers - 1));
  return element_inside(t, l, where);
}

// Returns the index of the element that contains a coordinate. A coordinate far outside is clamped, so that it fits
// into an integer; NaN becomes 0.
std::int64_t element_of(float x) {
  constexpr float far = 0x1p40F;
  return std::isnan(x) ? 0 : static_cast<std::int64_t>(std::clamp(std::floor(x), -far, far));
}

struct neighbours {
  std::int64_t first = 0;
  float weight = 0;  // the weight of the second element
};

neighbours between(float x) {
  const float shifted = x - 0.5F, below = std::floor(shifted);
  const float fraction = std::isfinite(shifted) ? shifted - below : 0;
  return {element_of(shifted), std::floor(fraction * 256 + 0.5F) / 256};
}

}  // namespace

void set_texel_observer(const texel_observer* observer) { observes_texels = observer; }

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

namespace {

const texture_level& level_at(const texture& t, std::uint32_t n) { return n == 0 ? t : t.smaller[n - 1]; }

// The point of a cube's surface in a given direction. The coordinates of the point on its face are (across / major,
// down / major), from -1 to 1.
struct place_on_cube {
  unsigned face = 0;
  float across = 0, down = 0;
  float major = 1;  // the magnitude of the largest coordinate
};

// Returns the coordinates of a direction in the coordinate system of a face: across, down, and towards the face. `d`
// may also be the derivative of a direction.
std::array<float, 3> coordinates_on(unsigned face, const std::array<float, 3>& d) {
  const auto [x, y, z] = d;
  switch (face) {
    case 0: return {-z, -y, x};
    case 1: return {z, -y, -x};
    case 2: return {x, z, y};
    case 3: return {x, -z, -y};
    case 4: return {x, -y, z};
    default: return {-x, -y, -z};
  }
}

place_on_cube on_cube(const std::array<float, 3>& d) {
  const float a = std::fabs(d[0]), b = std::fabs(d[1]), c = std::fabs(d[2]);
  const unsigned axis = c >= a && c >= b ? 2 : b >= a ? 1 : 0;
  const unsigned face = 2 * axis + (d[axis] < 0 ? 1 : 0);
  const auto [across, down, major] = coordinates_on(face, d);
  return {face, across, down, major};
}

// Returns the direction to a point of a face.
std::array<float, 3> direction(unsigned face, float across, float down) {
  switch (face) {
    case 0: return {1, -down, -across};
    case 1: return {-1, -down, across};
    case 2: return {across, 1, down};
    case 3: return {across, -1, -down};
    case 4: return {across, -down, 1};
    default: return {-across, -down, -1};
  }
}

texture_position<float> on_face(const texture& t, const texture_position<float>& where) {
  const place_on_cube place = on_cube({where.x, where.y, where.z});
  const auto fraction = [&](float f) { return place.major == 0 ? 0.5F : (f / place.major + 1) / 2; };
  const auto last = static_cast<std::uint32_t>(t.layers / 6 - 1);
  return {fraction(place.across), fraction(place.down), 0, 6 * std::min(where.layer, last) + place.face};
}

// Returns an element of a face. If the position is beyond an edge, the element is on the adjacent face.
channels_of_element element_across_edge(const texture& t, const texture_level& l, const element_position& where) {
  const auto size = static_cast<std::int64_t>(l.width);
  const auto centre = [&](std::int64_t n) { return (2 * static_cast<float>(n) + 1) / static_cast<float>(size) - 1; };
  const unsigned face = where.layer % 6;
  const place_on_cube place = on_cube(direction(face, centre(where.x), centre(where.y)));
  const auto index = [&](float f) {
    return std::clamp<std::int64_t>(element_of((f / place.major + 1) / 2 * static_cast<float>(size)), 0, size - 1);
  };
  return element_inside(t, l, {index(place.across), index(place.down), 0, where.layer - face + place.face});
}

// Returns an element that a filter reads. A filter reads two adjacent elements in each dimension.
channels_of_element element_for_filter(const texture& t, const texture_level& l, const element_position& where) {
  if (!t.cube || !t.seamless) return element_at(t, l, where);
  const auto size = static_cast<std::int64_t>(l.width);
  const auto lies_in = [&](std::int64_t n) { return n >= 0 && n < size; };
  if (lies_in(where.x) || lies_in(where.y)) return element_across_edge(t, l, where);
  // Three faces meet at a corner: the result is the mean of three elements, one of each face.
  const element_position beside{std::clamp<std::int64_t>(where.x, 0, size - 1), where.y, 0, where.layer};
  const element_position below{where.x, std::clamp<std::int64_t>(where.y, 0, size - 1), 0, where.layer};
  const auto one = element_across_edge(t, l, beside), two = element_across_edge(t, l, below),
             three = element_inside(t, l, {beside.x, below.y, 0, where.layer});
  channels_of_element result{};
  for (unsigned c = 0; c < 4; ++c)
    result[c] = std::bit_cast<std::uint32_t>(
        (std::bit_cast<float>(one[c]) + std::bit_cast<float>(two[c]) + std::bit_cast<float>(three[c])) / 3);
  return result;
}

// Returns the coordinates in units of elements of a level.
texture_position<float> scaled(const texture& t, const texture_level& l, const texture_position<float>& where) {
  auto [x, y, z, layer] = where;
  if (t.normalized || t.cube) {
    x *= static_cast<float>(l.width);
    y *= static_cast<float>(l.height);
    z *= static_cast<float>(l.depth);
  }
  return {x, y, z, layer};
}

channels_of_element read_level(const texture& t, const texture_level& l, const texture_position<float>& where) {
  const auto [x, y, z, layer] = scaled(t, l, where);
  if (!t.linear) return element_at(t, l, {element_of(x), element_of(y), element_of(z), layer});
  const neighbours across = between(x);
  const neighbours down = l.height == 0 ? neighbours{} : between(y);
  const neighbours deep = l.depth == 0 ? neighbours{} : between(z);
  const auto weight_of = [](const neighbours& pair, bool second) { return second ? pair.weight : 1 - pair.weight; };
  std::array<double, 4> sum{};  // double, because float would round each sum
  for (unsigned n = 0; n < 8; ++n) {
    const bool right = (n & 1) != 0, below = (n & 2) != 0, behind = (n & 4) != 0;
    const float weight = weight_of(across, right) * weight_of(down, below) * weight_of(deep, behind);
    if (weight == 0) continue;
    const auto part = element_for_filter(
        t, l, {across.first + (right ? 1 : 0), down.first + (below ? 1 : 0), deep.first + (behind ? 1 : 0), layer});
    for (unsigned c = 0; c < 4; ++c) sum[c] += double{weight} * std::bit_cast<float>(part[c]);
  }
  channels_of_element result{};
  for (unsigned c = 0; c < 4; ++c) result[c] = std::bit_cast<std::uint32_t>(static_cast<float>(sum[c]));
  return result;
}

// Returns the distance, in elements, by which a point on the face moves if the direction changes by `moved`.
float elements_on_face(const texture& t, const texture_position<float>& where, const std::array<float, 3>& moved) {
  const place_on_cube from = on_cube({where.x, where.y, where.z});
  if (from.major == 0) return 0;
  const auto [across, down, major] = coordinates_on(from.face, moved);
  const auto quotient = [&from, major = major](float moved_part, float part) {
    return (moved_part * from.major - part * major) / (from.major * from.major);
  };
  return std::hypot(quotient(across, from.across), quotient(down, from.down)) / 2 * static_cast<float>(t.width);
}

// Returns the level of detail plus the texture's bias, clamped to the levels of the texture. For NaN, `level` plus bias
// counts as 0.
float clamped_level(const texture& t, float level) {
  const float wanted = std::isnan(level) ? 0 : level + t.level_bias;
  return std::clamp(std::clamp(wanted, t.least_level, std::max(t.least_level, t.greatest_level)), 0.0F,
                    static_cast<float>(t.levels - 1));
}

// Returns the number of the level nearest to a clamped level.
std::uint32_t nearest_level(const texture& t, float clamped) {
  return std::min(static_cast<std::uint32_t>(std::floor(clamped + 0.5F)), t.levels - 1);
}

}  // namespace

std::array<std::uint32_t, 4> read_texture(const texture& t, const texture_position<float>& given, float level) {
  const texture_position<float> where = t.cube ? on_face(t, given) : given;
  if (t.levels == 1) return read_level(t, t, where);
  const float wanted = clamped_level(t, level);
  if (!t.between_levels) return read_level(t, level_at(t, nearest_level(t, wanted)), where);
  const auto first = static_cast<std::uint32_t>(wanted);
  const float weight = std::floor((wanted - static_cast<float>(first)) * 256) / 256;
  auto result = read_level(t, level_at(t, first), where);
  if (weight == 0) return result;
  const auto next = read_level(t, level_at(t, first + 1), where);
  for (unsigned c = 0; c < 4; ++c)
    result[c] = std::bit_cast<std::uint32_t>((1 - weight) * std::bit_cast<float>(result[c]) +
                                             weight * std::bit_cast<float>(next[c]));
  return result;
}

float level_of_gradients(const texture& t, const texture_position<float>& where, const std::array<float, 3>& along,
                         const std::array<float, 3>& down) {
  const auto elements = [&](const std::array<float, 3>& d) -> float {
    if (t.cube) return elements_on_face(t, where, d);
    const auto size = [&](std::uint64_t n) { return t.normalized ? static_cast<float>(n) : n == 0 ? 0.0F : 1.0F; };
    return std::hypot(d[0] * size(t.width), d[1] * size(t.height), d[2] * size(t.depth));
  };
  const float most = std::max(elements(along), elements(down));
  return std::floor(std::log2(most) * 256 + 0.5F) / 256;
}

std::array<std::uint32_t, 4> gather_texture(const texture& t, const texture_position<float>& given, unsigned channel) {
  if (channel >= t.channels) return {};
  const texture_level& l = level_at(t, nearest_level(t, clamped_level(t, 0)));
  const auto [x, y, z, layer] = scaled(t, l, t.cube ? on_face(t, given) : given);
  // As in a filter, the fraction has 8 bits: a coordinate very near to the next element is rounded to that element.
  const auto first = [](float f) { return element_of(std::floor((f - 0.5F) * 256 + 0.5F) / 256); };
  const std::int64_t left = first(x), top = first(y);
  const auto at = [&, layer = layer](std::int64_t across, std::int64_t down) {
    return element_for_filter(t, l, {left + across, top + down, 0, layer})[channel];
  };
  return {at(0, 1), at(1, 1), at(1, 0), at(0, 0)};
}

std::array<std::uint32_t, 4> fetch_texture(const texture& t, const texture_position<std::int32_t>& where) {
  const auto lies_in = [](std::int32_t i, std::uint64_t size) {
    return i >= 0 && (size == 0 || static_cast<std::uint64_t>(i) < size);
  };
  if (!lies_in(where.x, t.width) || !lies_in(where.y, t.height) || !lies_in(where.z, t.depth)) return {};
  return element_at(t, t, {where.x, where.y, where.z, where.layer});
}

}  // namespace hpe::ptx
