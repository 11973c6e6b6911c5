// No bit of wave fields, records and images depends on the number of devices.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/rtm/experiment.h"

namespace hpe::rtm::testing {
namespace {

struct outcome {
  std::vector<float> field, records, image, illumination;
};

template <class Range>
std::vector<float> copy_of(const Range& r) {
  return {r.begin(), r.end()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Runs a small migration: a forward pass with kept fields, then a backward pass with the records and the correlation.
outcome run(std::int64_t nx, std::int64_t ny, std::int64_t nz, const boundaries& edges, std::int64_t order,
            bool varying_density, int devices, exchange how = exchange::direct) {
  volume ground = make_volume(nx, ny, nz, spacing);
  for (std::int64_t x = 0; x < nx; ++x)
    for (std::int64_t y = 0; y < ny; ++y)
      for (std::int64_t z = 0; z < nz; ++z)
        ground.at(x, y, z) = static_cast<float>(1500 + 600.0 * static_cast<double>(x) / static_cast<double>(nx) +
                                                7.0 * static_cast<double>(y) + (2 * z > nz ? 800 : 0));
  const auto density = varying_density ? random_densities(ground, 3) : nullptr;
  const experiment e = make_experiment(std::move(ground), 3500, 0.9, devices, edges, order, density);

  constexpr std::int64_t steps = 61, every = 4;
  std::vector<kernels::point> receivers;
  for (std::int64_t x = 0; x < nx; x += 3) receivers.push_back(e.cells.cell(x, ny - 1, 2));
  receivers.push_back(receivers.front());  // a place may occur twice in the list
  traces<float> source(e.parts, {e.cells.cell(nx / 2, ny / 2, 3)}, steps), heard(e.parts, receivers, steps);
  source.write(ricker(40, e.time_step, steps));
  const medium<float> m(e.cells, e.parts, e.ground, e.time_step, e.density.get());
  propagator<float> wave(e.cells, e.parts, how);
  const kept_fields<float> kept(e.cells, e.parts, steps / every + 1);
  const stack<float> image(e.cells, e.parts);
  for (std::int64_t t = 0; t < steps; ++t) {
    if (t % every == 0) wave.keep(kept, t / every);
    wave.step(m, &source, &heard, t);
  }
  outcome o;
  o.field = copy_of(wave.field());
  o.records = heard.read();
  wave.reset();
  for (std::int64_t t = steps - 1; t >= 0; --t) {
    if (t % every == 0) wave.correlate(kept, t / every, image);
    wave.step(m, &heard, nullptr, t);
  }
  o.image = copy_of(image.image);
  o.illumination = copy_of(image.illumination);
  return o;
}

void expect_the_same_on_any_number_of_devices(std::int64_t nx, std::int64_t ny, std::int64_t nz, bool free_surface,
                                              std::int64_t cpml = 0, std::int64_t order = usual_order,
                                              bool varying_density = false) {
  boundaries edges;
  edges.sponge = cpml > 0 ? -1 : 9;
  edges.cpml = cpml;
  edges.free_surface = free_surface;
  ASSERT_GE(device_count(), 2) << "this test needs several devices, as HPE_DEVICES=soft:4";
  const outcome one = run(nx, ny, nz, edges, order, varying_density, 1);
  EXPECT_GT(norm(one.field), 0);
  EXPECT_GT(norm(one.records), 0);
  EXPECT_GT(norm(one.image), 0);
  for (int devices = 2; devices <= std::min(device_count(), 4); ++devices) {
    for (const exchange how : {exchange::direct, exchange::copied}) {
      if (how == exchange::copied && devices < std::min(device_count(), 4)) continue;  // to save time
      SCOPED_TRACE(std::to_string(devices) + (how == exchange::copied ? " devices, copied" : " devices, direct"));
      const outcome several = run(nx, ny, nz, edges, order, varying_density, devices, how);
      EXPECT_TRUE(same_bits(one.field, several.field));
      EXPECT_TRUE(same_bits(one.records, several.records));
      EXPECT_TRUE(same_bits(one.image, several.image));
      EXPECT_TRUE(same_bits(one.illumination, several.illumination));
    }
  }
}

TEST(Split, Section) { expect_the_same_on_any_number_of_devices(83, 1, 61, false); }
TEST(Split, ThinVolume) { expect_the_same_on_any_number_of_devices(43, 5, 37, false); }
TEST(Split, Volume) { expect_the_same_on_any_number_of_devices(41, 35, 33, false); }
// The volume is so long that separate launches compute the planes that neighbouring devices read.
TEST(Split, LongVolume) { expect_the_same_on_any_number_of_devices(110, 20, 70, false); }
TEST(Split, FreeSurface) { expect_the_same_on_any_number_of_devices(41, 35, 33, true); }
TEST(Split, MatchedLayersOfASection) { expect_the_same_on_any_number_of_devices(83, 1, 61, false, 12); }
TEST(Split, MatchedLayersOfAVolume) { expect_the_same_on_any_number_of_devices(21, 35, 33, true, 7); }
TEST(Split, OrderFour) { expect_the_same_on_any_number_of_devices(41, 35, 33, false, 0, 4); }
TEST(Split, OrderSixteen) { expect_the_same_on_any_number_of_devices(41, 35, 33, true, 9, 16); }
TEST(Split, VaryingDensity) { expect_the_same_on_any_number_of_devices(41, 35, 33, true, 7, usual_order, true); }
TEST(Split, LargerThanAGranule) { expect_the_same_on_any_number_of_devices(1500, 1, 480, false); }

TEST(Split, SlabsOfFewerPlanesThanTheStencilReaches) {
  // With 6 planes on 4 devices, a device also reads planes of devices that are not its direct neighbours.
  ASSERT_GE(device_count(), 2) << "this test needs several devices, as HPE_DEVICES=soft:4";
  boundaries edges;
  edges.sponge = 0;
  std::vector<float> first;
  for (int devices = 1; devices <= std::min(device_count(), 4); ++devices) {
    const experiment e = make_experiment(make_volume(6, 1, 40, spacing, 2000), 2000, 0.9, devices, edges);
    const auto heard = record<float>(e, {e.cells.cell(0, 0, 5)}, ricker_of<float>(30, e.time_step, 80),
                                     {e.cells.cell(5, 0, 30), e.cells.cell(2, 0, 8)});
    if (devices == 1) first = heard;
    EXPECT_TRUE(same_bits(first, heard)) << devices << " devices";
  }
}

TEST(Grid, TapersOfEachAxisAreWholeVectors) {
  // The kernels for GPUs read four factors of the third axis at a time; in memory, they follow the factors of the other
  // two axes.
  for (const std::int64_t cpml : {0, 7}) {
    boundaries edges;
    edges.cpml = cpml;
    edges.thin = 1;
    const grid g = make_grid(41, 38, 27, spacing, edges, 0.9);
    for (const auto* axis : {&g.taper_x, &g.taper_y, &g.taper_z}) EXPECT_EQ(axis->size() % kernels::row_multiple, 0U);
    EXPECT_GE(g.taper_z.size(), static_cast<std::size_t>(kernels::whole_vectors(g.layout.nz)));
  }
  const grid whole = make_grid(51, 38, 27, spacing, {.sponge = 3}, 0.9);
  for (const grid& it : {slab_of(whole, 0, 22), slab_of(whole, 22, 57)}) {
    EXPECT_EQ(it.taper_x.size() % kernels::row_multiple, 0U);
    EXPECT_GE(it.taper_x.size(), static_cast<std::size_t>(it.layout.nx));
  }
}

TEST(Decomposition, CoversEveryPlaneOnceAndPrefersPlacement) {
  for (const std::int64_t nx : {7, 100, 1681, 4000}) {
    const auto layout = kernels::make_layout(nx, 1, 480, kernels::y_ends::flat, false);
    for (int devices = 1; devices <= 4; ++devices) {
      const decomposition parts = decompose(layout, devices, sizeof(float));
      ASSERT_EQ(parts.devices(), devices);
      EXPECT_EQ(parts.first(0), 0);
      EXPECT_EQ(parts.last(devices - 1), nx);
      for (int d = 0; d < devices; ++d) {
        EXPECT_LT(parts.first(d), parts.last(d));
        EXPECT_LE(std::abs(parts.last(d) - parts.first(d) - nx / devices), nx / devices / 20 + 2);
      }
    }
  }
}

}  // namespace
}  // namespace hpe::rtm::testing
