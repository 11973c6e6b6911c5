#include "apps/rtm/wave_field.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/rtm/experiment.h"

namespace hpe::rtm::testing {
namespace {

constexpr std::int64_t radius = kernels::usual_radius;

experiment two_slabs(std::int64_t nx) {
  boundaries edges;
  edges.sponge = 0;
  return make_experiment(make_volume(nx, 3, 20, spacing, 2000), 2000, 0.9, 2, edges);
}

/// Writes random numbers to the planes that each device owns.
template <class T>
void write_slabs(const wave_field<T>& field, const std::vector<std::int64_t>& planes, unsigned seed) {
  std::mt19937 random(seed);
  for (int d = 0; d < 2; ++d)
    for (T& value : field.planes(d, planes[static_cast<std::size_t>(d)], planes[static_cast<std::size_t>(d) + 1]))
      value = static_cast<T>(random() % 1000) + 1;
}

TEST(WaveField, NeighboursGetTheOutermostPlanesAndNoOthers) {
  ASSERT_GE(device_count(), 2) << "this test needs several devices, as HPE_DEVICES=soft:4";
  const experiment e = two_slabs(21);
  const std::vector<std::int64_t>& planes = e.parts.planes;
  const std::int64_t x = planes[1];
  const wave_field<float> field(e.cells.layout, planes, exchange::copied);
  field.clear();
  write_slabs(field, planes, 5);
  const auto same = [&](std::int64_t x0, std::int64_t x1) {
    return std::ranges::equal(field.planes(0, x0, x1), field.planes(1, x0, x1));
  };
  EXPECT_FALSE(same(x - radius, x));
  EXPECT_FALSE(same(x, x + radius));
  field.send();
  EXPECT_TRUE(same(x - radius, x));
  EXPECT_TRUE(same(x, x + radius));
  for (const float value : field.planes(0, -radius, 0)) ASSERT_EQ(value, 0) << "beyond the grid";
  for (const float value : field.planes(1, planes[2], planes[2] + radius)) ASSERT_EQ(value, 0) << "beyond the grid";
}

TEST(WaveField, IsTheSameForTheHostWithEitherExchange) {
  ASSERT_GE(device_count(), 2) << "this test needs several devices, as HPE_DEVICES=soft:4";
  const experiment e = two_slabs(21);
  std::vector<double> first;
  for (const exchange how : {exchange::direct, exchange::copied}) {
    wave_field<double> field(e.cells.layout, e.parts.planes, how);
    for (const unsigned seed : {1U, 2U}) {  // in the second round, whole() must return the new values
      field.clear();
      write_slabs(field, e.parts.planes, seed);
      field.send();
      const array<double>& all = field.whole();
      ASSERT_EQ(all.size(), static_cast<std::size_t>(e.cells.layout.size()));
      if (seed == 1) continue;
      if (how == exchange::direct) first.assign(all.begin(), all.end());
      EXPECT_TRUE(std::equal(first.begin(), first.end(), all.begin(), all.end()));
    }
  }
}

TEST(WaveField, IsOneArrayWhereSlabsAreThinnerThanTheStencil) {
  ASSERT_GE(device_count(), 2) << "this test needs several devices, as HPE_DEVICES=soft:4";
  for (const std::int64_t nx : {std::int64_t{7}, 2 * radius}) {
    const experiment e = two_slabs(nx);
    const wave_field<float> field(e.cells.layout, e.parts.planes, exchange::copied);
    EXPECT_EQ(field.seen_by(0) == field.seen_by(1), nx < 2 * radius) << nx;
  }
}

}  // namespace
}  // namespace hpe::rtm::testing
