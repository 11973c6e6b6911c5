// Compares the wave on devices with a computation in double precision. Checks that the bits do not depend on the number
// of devices and on the cut, for stencils of all orders.

#include "apps/fdtd/field.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace hpe::fdtd {
namespace {

struct problem {
  triple cells;
  std::vector<float> speed, start;

  problem(const triple& size, std::int64_t order, unsigned seed) : cells(size) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> any(-1, 1);
    const auto fast = static_cast<float>(stable_speed(order));
    for (std::int64_t i = 0; i < size[0] * size[1] * size[2]; ++i) {
      speed.push_back(fast * (0.6F + 0.3F * any(random)));
      start.push_back(any(random));
    }
  }
  [[nodiscard]] std::size_t index(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return static_cast<std::size_t>((x * cells[1] + y) * cells[2] + z);
  }
};

std::vector<float> on_devices(const problem& g, std::int64_t order, const triple& parts, int steps,
                              exchange how = exchange::copied) {
  field f(
      g.cells, order, parts, [&](auto x, auto y, auto z) { return g.speed[g.index(x, y, z)]; }, how);
  f.set([&](auto x, auto y, auto z) { return g.start[g.index(x, y, z)]; });
  for (int t = 0; t < steps; ++t) f.step();
  return f.values();
}

std::vector<double> reference(const problem& g, std::int64_t order, int steps) {
  std::vector<double> now(g.start.begin(), g.start.end()), next = now;
  const auto at = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    const bool inside = x >= 0 && x < g.cells[0] && y >= 0 && y < g.cells[1] && z >= 0 && z < g.cells[2];
    return inside ? now[g.index(x, y, z)] : 0.0;
  };
  for (int t = 0; t < steps; ++t) {
    for (std::int64_t x = 0; x < g.cells[0]; ++x)
      for (std::int64_t y = 0; y < g.cells[1]; ++y)
        for (std::int64_t z = 0; z < g.cells[2]; ++z) {
          double laplacian = 0;
          for (std::int64_t k = -order / 2; k <= order / 2; ++k)
            laplacian +=
                kernels::stencil_weight(order / 2, std::abs(k)) * (at(x + k, y, z) + at(x, y + k, z) + at(x, y, z + k));
          double& n = next[g.index(x, y, z)];
          n = 2 * at(x, y, z) - n + static_cast<double>(g.speed[g.index(x, y, z)]) * laplacian;
        }
    std::swap(now, next);
  }
  return now;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Field, IsNearTheReferenceForEveryOrder) {
  const unsigned seed = std::random_device{}();
  for (std::int64_t order = 2; order <= 16; order += 2) {
    const problem g({21, 18, 37}, order, seed);
    const std::vector<double> wanted = reference(g, order, 6);
    const std::vector<float> got = on_devices(g, order, {1, 1, 1}, 6);
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::abs(wanted[i] - static_cast<double>(got[i])));
    EXPECT_LT(worst, 2e-5) << "order " << order << ", seed " << seed;
  }
}

TEST(Field, AnyCutGivesTheSameBits) {
  const int devices = device_count();
  const unsigned seed = std::random_device{}();
  for (const std::int64_t order : {2, 6, 8, 16}) {
    const problem g({40, 35, 101}, order, seed);
    const std::vector<float> wanted = on_devices(g, order, {1, 1, 1}, 9);
    for (const triple& parts : {triple{2, 1, 1}, triple{1, 2, 1}, triple{1, 1, 2}, triple{4, 1, 1}, triple{2, 2, 1},
                                triple{1, 2, 2}, triple{2, 2, 2}}) {
      if (parts[0] * parts[1] * parts[2] > devices) continue;
      EXPECT_TRUE(same_bits(wanted, on_devices(g, order, parts, 9)))
          << "order " << order << ", " << parts[0] << " x " << parts[1] << " x " << parts[2] << ", seed " << seed;
    }
  }
}

TEST(Field, DirectExchangeGivesTheSameBits) {
  const unsigned seed = std::random_device{}();
  for (const std::int64_t order : {2, 8, 16}) {
    // Arrays of several granules, so that each device is the home of a part.
    const problem g({80, 70, 120}, order, seed);
    const std::vector<float> wanted = on_devices(g, order, {1, 1, 1}, 9);
    for (std::int64_t slabs = 1; slabs <= std::min(4, device_count()); ++slabs)
      EXPECT_TRUE(same_bits(wanted, on_devices(g, order, {slabs, 1, 1}, 9, exchange::direct)))
          << "order " << order << ", " << slabs << " slabs, seed " << seed;
  }
}

TEST(Field, DirectExchangeCopiesNothing) {
  if (device_count() < 2) GTEST_SKIP() << "needs two devices";
  field f(
      {80, 70, 120}, 8, {2, 1, 1}, [](auto, auto, auto) { return 0.05F; }, exchange::direct);
  f.set([](auto x, auto y, auto z) { return static_cast<float>(x * 7 + y * 3 + z % 5); });
  f.step();
  synchronize();
  const hpeStatistics before = statistics();
  for (int t = 0; t < 4; ++t) f.step();
  synchronize();
  const hpeStatistics after = statistics();
  EXPECT_EQ(after.launches - before.launches, 8U);
  EXPECT_EQ(after.bytes_peer, before.bytes_peer);
  EXPECT_EQ(after.migrations, before.migrations);
}

TEST(Field, SmallGridsWork) {
  for (const triple& cells : {triple{1, 1, 1}, triple{1, 5, 3}, triple{16, 2, 1}}) {
    const problem g(cells, 4, 5);
    const std::vector<double> wanted = reference(g, 4, 3);
    const std::vector<float> got = on_devices(g, 4, {1, 1, 1}, 3);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5);
  }
  if (device_count() < 2) return;
  const problem thin({4, 3, 5}, 4, 6);  // each half has exactly as many planes as the stencil's radius
  EXPECT_TRUE(same_bits(on_devices(thin, 4, {1, 1, 1}, 5), on_devices(thin, 4, {2, 1, 1}, 5)));
}

TEST(Field, IsSetToAnotherOne) {
  const int parts = device_count() < 2 ? 1 : 2;
  const auto make = [&](std::int64_t nx, exchange how = exchange::copied) {
    return field(
        {nx, 9, 30}, 4, {parts, 1, 1}, [](auto, auto, auto) { return 0.05F; }, how);
  };
  field given = make(20), other = make(20);
  given.set([](auto x, auto y, auto z) { return static_cast<float>(x * 7 + y * 3 + z % 5); });
  other.set([](auto, auto, auto) { return 99.F; });
  for (int t = 0; t < 3; ++t) other.step();
  other.set(given);
  EXPECT_TRUE(same_bits(given.values(), other.values()));
  for (field* f : {&given, &other})
    for (int t = 0; t < 5; ++t) f->step();
  EXPECT_TRUE(same_bits(given.values(), other.values()));
  field larger = make(24);
  EXPECT_THROW(larger.set(given), bad_input);
  field direct = make(20, exchange::direct), also_direct = make(20, exchange::direct);
  if (parts > 1) {
    EXPECT_THROW(direct.set(given), bad_input);
  }
  also_direct.set([](auto x, auto y, auto z) { return static_cast<float>(x + y + z); });
  direct.set(also_direct);
  EXPECT_TRUE(same_bits(direct.values(), also_direct.values()));
}

TEST(Field, RefusesInvalidSettings) {
  const auto none = [](auto, auto, auto) { return 0.F; };
  for (const std::int64_t order : {0, 1, 3, 18, -2}) EXPECT_THROW(field({8, 8, 8}, order, {1, 1, 1}, none), bad_input);
  EXPECT_THROW(field({8, 8, 0}, 2, {1, 1, 1}, none), bad_input);
  EXPECT_THROW(field({8, 8, 8}, 8, {3, 1, 1}, none), bad_input);
  EXPECT_THROW(field({800, 8, 8}, 2, {device_count() + 1, 1, 1}, none), bad_input);
  if (device_count() > 1) {
    EXPECT_THROW(field({8, 8, 8}, 2, {1, 2, 1}, none, exchange::direct), bad_input);
  }
}

}  // namespace
}  // namespace hpe::fdtd
