// Compares reads of textures with the formulas of the CUDA C++ Programming Guide, "Texture Fetching", in double
// precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "runtime/ptx/execution/textures/texture.h"

namespace hpe::ptx::test {
namespace {

using addressing = texture::addressing;
using element = texture::element;

constexpr int width = 7, height = 5, planes = 3;
constexpr std::array<int, 3> sizes{width, height, planes};
constexpr float border = 99;

// The guide's rule for a normalised coordinate at the centre of element i: returns the element that is read; -1 for the
// border.
int element_by_rule(int i, int size, addressing mode) {
  double x = (i + 0.5) / size;
  const double below = std::floor(x);
  switch (mode) {
    case addressing::clamp: x = std::clamp(x, 0.5 / size, 1 - 0.5 / size); break;
    case addressing::wrap: x -= below; break;
    case addressing::mirror: x = std::fmod(std::fabs(below), 2) == 0 ? x - below : 1 - (x - below); break;
    case addressing::border:
      if (x < 0 || x >= 1) return -1;
  }
  return static_cast<int>(std::floor(x * size));
}

class Textures : public testing::Test {
 protected:
  Textures() {
    for (float& each : values_) each = static_cast<float>(random_() % 256);
    it_.data = values_.data();
    it_.width = width;
    it_.border[0] = std::bit_cast<std::uint32_t>(border);
    it_.pitch = width * sizeof(float);
    it_.slice = height * it_.pitch;
  }

  // Treats the memory as an array of `dimensions` dimensions, or as layers of arrays.
  void shape(unsigned dimensions, bool layered) {
    it_.height = dimensions > 1 ? height : 0;
    it_.depth = dimensions > 2 ? planes : 0;
    it_.layers = layered ? planes : 0;
  }
  void choose_modes(bool normalized) {
    it_.normalized = normalized;
    const auto any = [&] {
      constexpr addressing all[] = {addressing::clamp, addressing::border, addressing::wrap, addressing::mirror};
      return all[random_() % (normalized ? 4 : 2)];
    };
    it_.across = any();
    it_.down = any();
    it_.deep = any();
  }
  [[nodiscard]] double value_at(std::array<int, 3> at, unsigned dimensions, unsigned layer) const {
    const addressing modes[] = {it_.across, it_.down, it_.deep};
    for (unsigned d = 0; d < 3; ++d) {
      at[d] = d < dimensions ? element_by_rule(at[d], sizes[d], modes[d]) : 0;
      if (at[d] < 0) return border;
    }
    const auto plane = static_cast<std::size_t>(at[2]) + (it_.layers != 0 ? std::min(layer, planes - 1U) : 0);
    return values_[(plane * height + static_cast<std::size_t>(at[1])) * width + static_cast<std::size_t>(at[0])];
  }
  [[nodiscard]] float read(const std::array<double, 3>& at, unsigned layer) const {
    const auto given = [&](unsigned d) { return static_cast<float>(it_.normalized ? at[d] / sizes[d] : at[d]); };
    return std::bit_cast<float>(read_texture(it_, {given(0), given(1), given(2), layer})[0]);
  }

  const unsigned seed_ = std::random_device{}();
  std::mt19937 random_{seed_};
  std::array<float, width * height * planes> values_{};
  texture it_;
};

struct kind_of_array {
  unsigned dimensions;
  bool layered;
};
constexpr kind_of_array kinds[] = {{1, false}, {2, false}, {3, false}, {1, true}, {2, true}};

TEST_F(Textures, PointSamplingTakesTheElementThatTheCoordinateLiesIn) {
  std::uniform_real_distribution<double> within(0.01, 0.99);
  for (const auto& [dimensions, layered] : kinds) {
    shape(dimensions, layered);
    for (int n = 0; n < 1000; ++n) {
      choose_modes(n % 2 == 0);
      std::array<int, 3> at{};
      std::array<double, 3> point{};
      for (unsigned d = 0; d < 3; ++d) {
        at[d] = static_cast<int>(random_() % static_cast<unsigned>(5 * sizes[d])) - 2 * sizes[d];
        point[d] = at[d] + within(random_);
      }
      const unsigned layer = random_() % (planes + 2);
      ASSERT_EQ(read(point, layer), value_at(at, dimensions, layer))
          << dimensions << layered << " at " << point[0] << ' ' << point[1] << ' ' << point[2] << " seed " << seed_;
    }
  }
}

// With weights of 8 bits, the error is at most 1/512 in each dimension.
TEST_F(Textures, FilteringWeighsTheNeighbours) {
  it_.linear = true;
  for (const auto& [dimensions, layered] : kinds) {
    shape(dimensions, layered);
    for (int n = 0; n < 1000; ++n) {
      choose_modes(n % 2 == 0);
      std::array<double, 3> point{}, fraction{};
      std::array<int, 3> first{};
      for (unsigned d = 0; d < 3; ++d) {
        point[d] = std::uniform_real_distribution<double>(-2.0 * sizes[d], 3.0 * sizes[d])(random_);
        first[d] = static_cast<int>(std::floor(point[d] - 0.5));
        fraction[d] = d < dimensions ? point[d] - 0.5 - first[d] : 0;
      }
      const unsigned layer = random_() % planes;
      double expected = 0;
      for (unsigned corner = 0; corner < 8; ++corner) {
        double weight = 1;
        std::array<int, 3> at = first;
        for (unsigned d = 0; d < 3; ++d) {
          const bool second = (corner >> d & 1) != 0;
          weight *= second ? fraction[d] : 1 - fraction[d];
          at[d] += second ? 1 : 0;
        }
        expected += weight * value_at(at, dimensions, layer);
      }
      ASSERT_NEAR(read(point, layer), expected, dimensions * 255.0 / 512 + 0.01)
          << dimensions << layered << " at " << point[0] << ' ' << point[1] << ' ' << point[2] << " seed " << seed_;
    }
  }
}

// Weights are fixed-point numbers of 9 bits, 8 of which are the fraction, so that they can represent 1.
TEST_F(Textures, WeightsAreMultiplesOfOne256th) {
  values_[0] = 0;
  values_[1] = 256;
  it_.linear = true;
  std::vector<bool> seen(257);
  for (int n = 0; n <= 4096; ++n) {
    const float got = read({0.5 + n / 4096.0, 0, 0}, 0);
    ASSERT_EQ(got, std::floor(got)) << n;
    ASSERT_NEAR(got, n / 16.0, 0.5) << n;
    seen[static_cast<std::size_t>(got)] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
}

template <class T>
void expect_fractions(element format, const std::vector<std::pair<int, float>>& pairs) {
  std::vector<T> memory;
  for (const auto& [stored, _] : pairs) memory.push_back(static_cast<T>(stored));
  texture t;
  t.data = memory.data();
  t.width = memory.size();
  t.format = format;
  for (std::size_t n = 0; n < pairs.size(); ++n) {
    const texture_position<float> at{static_cast<float>(n) + 0.5F};
    t.to_float = false;
    EXPECT_EQ(static_cast<std::int32_t>(read_texture(t, at)[0]), pairs[n].first);
    EXPECT_EQ(read_texture(t, at)[3], 1U);
    t.to_float = true;
    EXPECT_EQ(std::bit_cast<float>(read_texture(t, at)[0]), pairs[n].second) << pairs[n].first;
    EXPECT_EQ(std::bit_cast<float>(read_texture(t, at)[3]), 1.0F);
  }
}

TEST(TextureFormats, IntegersAreReadAsTheyAreOrAsFractions) {
  expect_fractions<std::uint8_t>(element::u8, {{0, 0}, {255, 1}, {51, 0.2F}});
  expect_fractions<std::int8_t>(element::s8, {{0, 0}, {127, 1}, {-127, -1}, {-128, -1}});
  expect_fractions<std::uint16_t>(element::u16, {{0, 0}, {65535, 1}, {13107, 0.2F}});
  expect_fractions<std::int16_t>(element::s16, {{0, 0}, {32767, 1}, {-32767, -1}, {-32768, -1}});
}

TEST(TextureFormats, HalvesBecomeFloats) {
  std::vector<std::uint16_t> memory{0x3c00, 0xc000, 0x0001, 0x7c00};  // 1, -2, 2^-24, infinity
  texture t;
  t.data = memory.data();
  t.width = 2;
  t.channels = 2;
  t.format = element::f16;
  const auto read = [&](float x) {
    const auto raw = read_texture(t, {x});
    return std::vector<float>{std::bit_cast<float>(raw[0]), std::bit_cast<float>(raw[1]), std::bit_cast<float>(raw[2]),
                              std::bit_cast<float>(raw[3])};
  };
  EXPECT_EQ(read(0.5F), (std::vector<float>{1, -2, 0, 1}));
  EXPECT_EQ(read(1.5F), (std::vector<float>{0x1p-24F, INFINITY, 0, 1}));
}

TEST_F(Textures, CoordinatesThatAreNoPlacesAreHarmless) {
  using limits = std::numeric_limits<float>;
  for (const bool linear : {false, true}) {
    it_.linear = linear;
    shape(3, false);
    for (const bool normalized : {false, true}) {
      choose_modes(normalized);
      for (const float x : {limits::quiet_NaN(), limits::infinity(), -limits::infinity(), limits::max()}) {
        const float got = std::bit_cast<float>(read_texture(it_, {x, x, x, 0})[0]);
        EXPECT_TRUE(got >= 0 && got < 256) << x << ": " << got;
      }
    }
  }
}

TEST_F(Textures, FetchesAreZeroOutside) {
  shape(2, true);
  const auto fetch = [&](int x, int y, unsigned layer) {
    return std::bit_cast<float>(fetch_texture(it_, {x, y, 0, layer})[0]);
  };
  EXPECT_EQ(fetch(6, 4, 2), values_.back());
  EXPECT_EQ(fetch(0, 0, 1), values_[static_cast<std::size_t>(width) * height]);
  for (const auto& [x, y] : std::vector<std::pair<int, int>>{{-1, 0}, {width, 0}, {0, -1}, {0, height}})
    EXPECT_EQ(fetch(x, y, 0), 0);
}

// tests/interpose/programs/mipmaps.cu compares textures with an H200. These tests cover what that comparison cannot
// show exactly.

// A texture with several levels. All elements of a level have the same value.
class Levels : public testing::Test {
 protected:
  Levels() {
    it_.data = values_.data();
    it_.width = it_.height = 4;
    it_.pitch = sizeof(float);  // all rows and elements of a level have the same value
    it_.normalized = true;
    it_.levels = 3;
    it_.greatest_level = 100;
    static_cast<texture_level&>(it_) = level(0, 4);
    it_.smaller[0] = level(1, 2);
    it_.smaller[1] = level(2, 1);
  }
  texture_level level(unsigned n, unsigned size) {
    std::fill(values_.begin() + 16 * n, values_.begin() + 16 * (n + 1), static_cast<float>(n));
    return {values_.data() + std::size_t{16} * n, size, size, size * sizeof(float), 0, 0, 0};
  }
  float read(float level) const { return std::bit_cast<float>(read_texture(it_, {0.5F, 0.5F}, level)[0]); }

  std::vector<float> values_ = std::vector<float>(48);
  texture it_;
};

TEST_F(Levels, AreChosenOrFilteredBetween) {
  EXPECT_EQ(read(0.49F), 0);
  EXPECT_EQ(read(0.5F), 1);
  EXPECT_EQ(read(9), 2);
  EXPECT_EQ(read(-9), 0);
  it_.between_levels = true;
  EXPECT_EQ(read(0.75F), 0.75F);
  EXPECT_EQ(read(1.999F), 1 + 255.0F / 256);
  EXPECT_EQ(read(std::numeric_limits<float>::quiet_NaN()), 0);
  it_.level_bias = -0.5F;
  it_.least_level = 0.25F;
  EXPECT_EQ(read(0.5F), 0.25F);
  EXPECT_EQ(read(1.5F), 1);
}

TEST_F(Levels, FollowTheLongerGradient) {
  it_.between_levels = true;
  const auto level_of = [&](std::array<float, 3> along, std::array<float, 3> down) {
    return level_of_gradients(it_, {0.5F, 0.5F}, along, down);
  };
  EXPECT_EQ(level_of({0.25F, 0, 0}, {}), 0);
  EXPECT_EQ(level_of({0.25F, 0, 0}, {0, 1, 0}), 2);
  EXPECT_NEAR(level_of({0.75F, 1, 0}, {}), std::log2(5.0F), 1.0F / 256);
  EXPECT_EQ(read(level_of({}, {})), 0);
}

// A cube of 2 x 2 elements on each face. All elements of a face are the face's number.
class Cube : public testing::Test {
 protected:
  Cube() {
    for (unsigned n = 0; n < values_.size(); ++n) values_[n] = static_cast<float>(n / 4);
    it_.data = values_.data();
    it_.width = it_.height = 2;
    it_.pitch = 2 * sizeof(float);
    it_.slice = 2 * it_.pitch;
    it_.layers = 6;
    it_.cube = true;
    it_.linear = true;
  }
  float read(float x, float y, float z) const { return std::bit_cast<float>(read_texture(it_, {x, y, z, 0})[0]); }

  std::array<float, 24> values_{};
  texture it_;
};

TEST_F(Cube, IsFilteredAcrossEdgesWhereItIsSeamless) {
  EXPECT_EQ(read(1, 0.99F, 0), 0);
  it_.seamless = true;
  EXPECT_EQ(read(1, 0, 0), 0);
  EXPECT_NEAR(read(1, 0.9999F, 0), 1, 0.01);    // between +x, which is 0, and +y, which is 2
  EXPECT_NEAR(read(0.9999F, 1, 0), 1, 0.01);    // the same from the other side
  EXPECT_NEAR(read(0, -0.9999F, -1), 4, 0.01);  // between -y, which is 3, and -z, which is 5
  EXPECT_NEAR(read(0, -1, -0.9999F), 4, 0.01);
  EXPECT_NEAR(read(1, 0.9999F, 0.9999F), 2, 0.01);  // the corner of +x (0), +y (2) and +z (4)
  EXPECT_NEAR(read(-1, -1, -0.9999F), 3, 0.01);     // the corner of -x (1), -y (3) and -z (5)
}

TEST_F(Cube, GradientsAreThoseOfItsFaces) {
  const auto level_of = [&](std::array<float, 3> moved) { return level_of_gradients(it_, {1, 0.5F, 0}, moved, {}); };
  EXPECT_EQ(level_of({0, 1, 0}), 0);
  EXPECT_EQ(level_of({0, 0, 4}), 2);
  EXPECT_EQ(level_of({4, 0, 0}), 1);  // towards the centre of the face: y / x changes by -y / x^2
}

TEST(TextureFormats, ChannelsOfSrgbBecomeLinear) {
  std::array<std::uint8_t, 4> memory{0, 255, 188, 188};
  texture t;
  t.data = memory.data();
  t.width = 1;
  t.channels = 4;
  t.format = element::u8;
  t.to_float = t.srgb = true;
  const auto raw = read_texture(t, {0.5F});
  EXPECT_EQ(std::bit_cast<float>(raw[0]), 0);
  EXPECT_EQ(std::bit_cast<float>(raw[1]), 1);
  EXPECT_NEAR(std::bit_cast<float>(raw[2]), 0.502886, 1e-4);
  EXPECT_EQ(std::bit_cast<float>(raw[3]), 188.0F / 255) << "the fourth channel is linear already";
}

}  // namespace
}  // namespace hpe::ptx::test
