// Properties of the discrete wave equation.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "apps/rtm/records.h"
#include "tests/rtm/experiment.h"

namespace hpe::rtm::testing {
namespace {

using kernels::point;

constexpr double pi = 3.14159265358979323846;

double largest(const std::vector<float>& v) {
  double most = 0;
  for (const float x : v) most = std::max(most, std::isfinite(x) ? std::abs(static_cast<double>(x)) : HUGE_VAL);
  return most;
}

/// Returns the largest value of the field 2,000 steps after a spike, in a box whose edges reflect or have matched
/// layers.
double after_two_thousand_steps(std::int64_t ny, double part_of_limit, std::int64_t cpml = 0,
                                std::int64_t order = usual_order) {
  boundaries edges;
  edges.sponge = cpml > 0 ? -1 : 0;
  edges.cpml = cpml;
  const experiment e =
      make_experiment(make_volume(40, ny, 36, spacing, 2000), 2000, part_of_limit, device_count(), edges, order);
  std::vector<float> spike(2000, 0.0f);
  spike[0] = 1;
  const std::vector<point> at{e.cells.cell(17, ny / 2, 15)};
  return largest(record<float>(e, at, spike, {e.cells.cell(20, ny / 2, 18), e.cells.cell(5, 0, 30)}));
}

TEST(Stability, JustBelowTheLimitStaysBounded) {
  EXPECT_LT(after_two_thousand_steps(1, 0.99), 10.0);
  EXPECT_LT(after_two_thousand_steps(34, 0.99), 10.0);
  EXPECT_LT(after_two_thousand_steps(6, 0.99), 10.0);
}

TEST(Stability, OtherOrdersHaveTheirOwnLimit) {
  for (const std::int64_t order : {4, 12, 16}) {
    EXPECT_LT(after_two_thousand_steps(34, 0.99, 0, order), 10.0) << order;
    EXPECT_GT(after_two_thousand_steps(1, 1.01, 0, order), 1e6) << order;
  }
}

TEST(Stability, MatchedLayersStayBounded) {
  for (const std::int64_t cells : {3, 20}) {
    EXPECT_LT(after_two_thousand_steps(1, 0.99, cells), 10.0);
    EXPECT_LT(after_two_thousand_steps(34, 0.99, cells), 10.0);
  }
}

TEST(Stability, ContrastsOfDensityStayBounded) {
  boundaries edges;
  edges.cpml = 10;
  for (const std::int64_t order : {8, 16}) {
    const volume ground = make_volume(40, 1, 36, spacing, 2000);
    const experiment e = make_experiment(ground, 2000, 0.99, device_count(), edges, order, random_densities(ground, 8));
    std::vector<float> spike(2000, 0.0f);
    spike[0] = 1;
    EXPECT_LT(largest(record<float>(e, {e.cells.cell(17, 0, 15)}, spike, {e.cells.cell(20, 0, 18)})), 10.0) << order;
  }
  const volume ground = make_volume(40, 1, 36, spacing, 2000);
  EXPECT_THROW(make_experiment(ground, 2000, 0.9, 1, edges, 8, random_densities(ground, 9)), bad_input);
}

TEST(Stability, JustAboveTheLimitBlowsUp) {
  EXPECT_GT(after_two_thousand_steps(1, 1.01), 1e6);
  EXPECT_GT(after_two_thousand_steps(34, 1.01), 1e6);
}

/// Returns the reflection of the edges in decibels: the largest difference from the records in a ground without edges,
/// at points everywhere in the model, relative to the largest recorded value.
double residue(double velocity, double fastest, double frequency, const boundaries& edges,
               std::int64_t order = usual_order) {
  constexpr std::int64_t nx = 120, nz = 100, more = 170;
  experiment with_edges =
      make_experiment(make_volume(nx, 1, nz, spacing, static_cast<float>(velocity)), fastest, 0.9, 1, edges, order);
  experiment without = make_experiment(
      make_volume(nx + 2 * more, 1, nz + 2 * more, spacing, static_cast<float>(velocity)), fastest, 0.9, 1, {}, order);
  // This time is long enough for the wave to cross the model twice, but not to return from the edges of the larger
  // model.
  const double seconds = 1.9 * static_cast<double>(more + 40) * spacing / velocity;
  const auto steps = static_cast<std::int64_t>(seconds / with_edges.time_step);
  const auto wavelet = ricker_of<float>(frequency, with_edges.time_step, steps);
  std::vector<point> near, far;
  for (std::int64_t x = 4; x < nx; x += 16)
    for (std::int64_t z = 4; z < nz; z += 16) {
      near.push_back(with_edges.cells.cell(x, 0, z));
      far.push_back(without.cells.cell(x + more, 0, z + more));
    }
  const auto got = record<float>(with_edges, {with_edges.cells.cell(50, 0, 4)}, wavelet, near);
  const auto wanted = record<float>(without, {without.cells.cell(50 + more, 0, 4 + more)}, wavelet, far);
  return 20 * std::log10(largest(difference(got, wanted)) / largest(wanted));
}

TEST(Boundary, SendsBackLessThanMinusThirtyDecibels) {
  const double slow = residue(1500, 4500, 16, {}), middle = residue(2500, 4500, 16, {}),
               fast = residue(4500, 4500, 16, {});
  RecordProperty("residue_db_1500", std::to_string(slow));
  RecordProperty("residue_db_2500", std::to_string(middle));
  RecordProperty("residue_db_4500", std::to_string(fast));
  EXPECT_LE(slow, -30);
  EXPECT_LE(middle, -30);
  EXPECT_LE(fast, -30);
}

TEST(Boundary, MatchedLayersSendBackLessThanMinusFortyDecibels) {
  boundaries edges;
  edges.cpml = 20;
  for (const int velocity : {1500, 2500, 3500, 4500}) {
    const double db = residue(velocity, 4500, 16, edges);
    RecordProperty("matched_residue_db_" + std::to_string(velocity), std::to_string(db));
    EXPECT_LE(db, -40) << velocity << " m/s";
  }
  for (const std::int64_t order : {4, 12, 16}) EXPECT_LE(residue(3000, 4500, 16, edges, order), -40) << order;
}

TEST(Boundary, FreeSurfaceTurnsTheSign) {
  // A wave that the surface reflects seems to come from the mirror image of the source, with reversed sign.
  boundaries edges;
  edges.free_surface = true;
  const experiment e = make_experiment(make_volume(160, 1, 160, spacing, 2000), 2000, 0.9, device_count(), edges);
  const experiment deep = make_experiment(make_volume(160, 1, 320, spacing, 2000), 2000, 0.9, device_count());
  const auto wavelet = ricker_of<float>(14, e.time_step, 420);
  const auto got = record<float>(e, {e.cells.cell(80, 0, 30)}, wavelet, {e.cells.cell(90, 0, 60)});
  const auto direct = record<float>(deep, {deep.cells.cell(80, 0, 190)}, wavelet, {deep.cells.cell(90, 0, 220)});
  const auto mirrored = record<float>(deep, {deep.cells.cell(80, 0, 130)}, wavelet, {deep.cells.cell(90, 0, 220)});
  const auto wanted = difference(direct, mirrored);
  EXPECT_LT(norm(difference(got, wanted)), 0.03 * norm(wanted));
  EXPECT_GT(norm(difference(got, direct)), 0.3 * norm(wanted));
}

TEST(Density, AContrastReflectsItsPartAtAllAngles) {
  // The two densities differ and the velocities are equal, so the reflection coefficient does not depend on the angle.
  // The reflected wave is the wave of a mirrored source times (b - a) / (b + a).
  constexpr std::int64_t nx = 200, nz = 160, face = 90;
  constexpr float a = 1000, b = 2500;
  const volume ground = make_volume(nx, 1, nz, spacing, 2000);
  auto density = std::make_shared<volume>(make_volume(nx, 1, nz, spacing, a));
  for (std::int64_t x = 0; x < nx; ++x)
    for (std::int64_t z = face; z < nz; ++z) density->at(x, 0, z) = b;
  migration_settings s;
  s.frequency = 12;
  s.steps = 560;
  s.devices = device_count();
  s.edges.cpml = 20;
  s.time_step = 0.9 * stable_step(ground, density.get(), s.edges, 2000, s.order);
  const auto records = [&](const std::shared_ptr<const volume>& of, std::int32_t source) {
    s.density = of;
    simulation on(ground, 2000, s, nullptr);
    shot one{{100, 0, source}, {}};
    for (std::int32_t x = 60; x < 170; x += 10) one.receivers.push_back({x, 0, 40});
    return on.record(on.medium_of(ground), one, "");
  };
  constexpr std::int32_t source = 50;
  const auto reflected = difference(records(density, source), records(nullptr, source));
  auto wanted = records(nullptr, 2 * face - 1 - source);
  for (float& v : wanted) v *= (b - a) / (b + a);
  const double error = norm(difference(reflected, wanted)) / norm(wanted);
  RecordProperty("relative_l2", scientific(error));
  EXPECT_LE(error, 0.05);
}

/// Resamples the records of `traces` receivers to intervals of a millisecond.
std::vector<float> resampled(const std::vector<float>& records, std::size_t traces, double time_step, double seconds) {
  std::vector<std::vector<double>> samples(traces);
  for (std::size_t i = 0; i < records.size(); ++i) samples[i % traces].push_back(records[i]);
  return resample(samples, time_step, 0, 1e-3, static_cast<std::int64_t>(seconds / 1e-3) - 20);
}

volume layered(std::int64_t nx, std::int64_t ny, std::int64_t nz) {
  volume v = make_volume(nx, ny, nz, spacing);
  for (std::int64_t x = 0; x < nx; ++x)
    for (std::int64_t y = 0; y < ny; ++y)
      for (std::int64_t z = 0; z < nz; ++z)
        v.at(x, y, z) =
            static_cast<float>(1500 + 900 * (4 * z > nz + x) + 1100 * (2 * z > nz + y) + 3 * static_cast<double>(x));
  return v;
}

/// Returns records on cells with three different sides, with rotated axes: the model's x axis has the cells and sides
/// of axis axis[0], and so on.
std::vector<float> records_with_axes(const std::array<std::size_t, 3>& axis, std::int64_t cpml) {
  constexpr std::array<std::int64_t, 3> cells{26, 20, 23};
  constexpr std::array<double, 3> side{10, 12, 8};
  constexpr std::array<std::int32_t, 3> source{8, 9, 7};
  constexpr std::array<std::array<std::int32_t, 3>, 3> receivers{{{19, 9, 7}, {8, 15, 9}, {12, 5, 18}}};
  boundaries edges;
  edges.sponge = cpml > 0 ? -1 : 10;
  edges.cpml = cpml;
  edges.thin = 1;
  const auto [x, y, z] = axis;
  const experiment e = make_experiment(make_volume(cells[x], cells[y], cells[z], {side[x], side[y], side[z]}, 2000),
                                       2000, 0.9, 1, edges);
  std::vector<point> at;
  for (const auto& r : receivers) at.push_back(e.cells.cell(r[x], r[y], r[z]));
  return record<float>(e, {e.cells.cell(source[x], source[y], source[z])}, ricker_of<float>(30, e.time_step, 200), at);
}

TEST(Cells, AxesOfDifferentSidesMayChangePlaces) {
  for (const std::int64_t cpml : {0, 8}) {
    const auto once = records_with_axes({0, 1, 2}, cpml), again = records_with_axes({1, 2, 0}, cpml),
               thrice = records_with_axes({2, 0, 1}, cpml);
    EXPECT_GT(norm(once), 0);
    EXPECT_LT(norm(difference(once, again)), 1e-5 * norm(once)) << cpml;
    EXPECT_LT(norm(difference(once, thrice)), 1e-5 * norm(once)) << cpml;
  }
}

TEST(Cells, LowCellsRecordWhatCubesRecord) {
  const experiment cubes = make_experiment(make_volume(200, 1, 200, 5, 2000), 2000, 0.5, 1);
  const experiment low = make_experiment(make_volume(100, 1, 200, {10, 10, 5}, 2000), 2000, 0.5, 1);
  constexpr double seconds = 0.3, frequency = 15;
  const auto records = [&](const experiment& e, std::int64_t every) {
    const auto wavelet = ricker_of<float>(frequency, e.time_step, static_cast<std::int64_t>(seconds / e.time_step));
    // A source of the same strength in cells of another size.
    std::vector<float> sent = wavelet;
    for (float& v : sent) v *= static_cast<float>(every);
    return resampled(record<float>(e, {e.cells.cell(48 * every, 0, 100)}, sent,
                                   {e.cells.cell(70 * every, 0, 100), e.cells.cell(60 * every, 0, 160)}),
                     2, e.time_step, seconds);
  };
  const auto wanted = records(cubes, 2), got = records(low, 1);
  EXPECT_LT(norm(difference(wanted, got)), 0.01 * norm(wanted));
}

TEST(Reciprocity, SourceAndReceiverChangePlaces) {
  const experiment e = make_experiment(layered(90, 1, 70), 3770, 0.9, device_count());
  const std::vector<point> a{e.cells.cell(12, 0, 6)}, b{e.cells.cell(71, 0, 55)};
  const auto wavelet = ricker_of<float>(16, e.time_step, 600);
  const auto there = record<float>(e, a, wavelet, b), back = record<float>(e, b, wavelet, a);
  const double relative = norm(difference(there, back)) / norm(there);
  RecordProperty("relative_l2", scientific(relative));
  EXPECT_GT(norm(there), 0);
  EXPECT_LE(relative, 1e-5);
}

/// Returns | <F q, d> - <q, F* d> | / (|F q| |d|), where q are the sources, F q the records at the receivers, and F*
/// the steps backward in time from the receivers to the sources.
template <class T>
double dot_product_error(std::int64_t ny, std::int64_t order = usual_order, bool varying_density = false) {
  boundaries edges;
  edges.sponge = 10;
  const volume ground = layered(50, ny, 40);
  const experiment e = make_experiment(ground, 3750, 0.9, device_count(), edges, order,
                                       varying_density ? random_densities(ground, 3) : nullptr);
  const std::vector<point> sources{e.cells.cell(5, 0, 3), e.cells.cell(30, ny / 2, 20)};
  const std::vector<point> receivers{e.cells.cell(44, ny - 1, 2), e.cells.cell(20, 0, 33), e.cells.cell(25, 0, 25)};
  constexpr std::size_t steps = 250;
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::vector<T> q(steps * sources.size()), d(steps * receivers.size());
  for (T& v : q) v = static_cast<T>(normal(random));
  for (T& v : d) v = static_cast<T>(normal(random));
  const std::vector<T> forward = record<T>(e, sources, q, receivers);
  const std::vector<T> adjoint = record<T>(e, receivers, d, sources, true);
  double left = 0, right = 0;
  for (std::size_t i = 0; i < d.size(); ++i) left += static_cast<double>(forward[i]) * static_cast<double>(d[i]);
  for (std::size_t i = 0; i < q.size(); ++i) right += static_cast<double>(q[i]) * static_cast<double>(adjoint[i]);
  EXPECT_GT(std::abs(left), 0);
  return std::abs(left - right) / (norm(forward) * norm(d));
}

TEST(Adjoint, StepsDownwardsAreTheAdjointOfStepsUpwards) {
  const double single_2d = dot_product_error<float>(1), single_3d = dot_product_error<float>(34);
  const double double_2d = dot_product_error<double>(1), double_thin = dot_product_error<double>(5),
               double_3d = dot_product_error<double>(34);
  RecordProperty("float", scientific(std::max(single_2d, single_3d)));
  RecordProperty("double", scientific(std::max({double_2d, double_thin, double_3d})));
  EXPECT_LE(single_2d, 1e-6);
  EXPECT_LE(single_3d, 1e-6);
  EXPECT_LE(double_2d, 1e-11);
  EXPECT_LE(double_thin, 1e-11);
  EXPECT_LE(double_3d, 1e-11);
  for (const std::int64_t order : {4, 12, 16}) EXPECT_LE(dot_product_error<double>(34, order), 1e-11) << order;
}

TEST(Adjoint, VaryingDensityLeavesStepsTheirOwnAdjoint) {
  for (const std::int64_t order : {4, 8, 12, 16}) {
    const double error = dot_product_error<double>(34, order, true);
    RecordProperty("double_" + std::to_string(order), scientific(error));
    EXPECT_LE(error, 1e-11) << order;
  }
  EXPECT_LE(dot_product_error<double>(1, usual_order, true), 1e-11);
  EXPECT_LE(dot_product_error<double>(5, usual_order, true), 1e-11);
  EXPECT_LE(dot_product_error<float>(34, usual_order, true), 1e-6);
}

/// Returns the records of a smooth pulse by six receivers, at fixed places and times, on cells of `h` metres and with
/// steps of `time_step` seconds. The pulse is a Gaussian in space and time and never reaches the edges. The density, if
/// it varies, is smooth.
std::vector<double> records_of_a_pulse(double h, double time_step, double every, std::int64_t order = 8,
                                       bool varying_density = false) {
  constexpr double side = 1400, velocity = 2000, width = 50, duration = 0.012, seconds = 0.18;
  constexpr double reach = 7 * width;  // further away, the pulse is smaller than the rounding error of its peak
  const auto cells = static_cast<std::int64_t>(side / h);
  const volume ground = make_volume(cells, 1, cells, h, velocity);
  boundaries edges;
  edges.sponge = 0;
  const grid g = make_grid(cells, 1, cells, h, edges, time_step / stable_step(2, h, velocity, order), order);
  const decomposition parts = decompose(g.layout, device_count(), sizeof(double));
  const auto steps = static_cast<std::int64_t>(std::lround(seconds / time_step)) + 1;
  const double middle = side / 2;
  volume density = make_volume(cells, 1, cells, h, 1);
  for (std::int64_t x = 0; x < cells && varying_density; ++x)
    for (std::int64_t z = 0; z < cells; ++z)
      density.at(x, 0, z) = static_cast<float>(2 + std::sin(2 * pi * static_cast<double>(x) * h / 700) *
                                                       std::cos(2 * pi * static_cast<double>(z) * h / 560));
  const auto root = [&](const point& at) { return std::sqrt(density.at(at.x, 0, at.z)); };
  std::vector<point> from;
  std::vector<double> shape;
  const auto radius = static_cast<std::int32_t>(reach / h), centre = static_cast<std::int32_t>(middle / h);
  for (std::int32_t x = -radius; x <= radius; ++x)
    for (std::int32_t z = -radius; z <= radius; ++z) {
      from.push_back(g.cell(centre + x, 0, centre + z));
      shape.push_back(std::exp(-0.5 * h * h * (x * x + z * z) / (width * width)) / root(from.back()));
    }
  std::vector<double> samples;
  for (std::int64_t t = 0; t < steps; ++t) {
    const double u = (static_cast<double>(t) * time_step - 6 * duration) / duration;
    for (const double w : shape) samples.push_back(w * std::exp(-0.5 * u * u));
  }
  std::vector<point> to;
  for (const int metres : {0, 80, 120, 160, 240, 280})
    to.push_back(
        g.cell(centre + static_cast<std::int32_t>(metres / h), 0, centre + static_cast<std::int32_t>(metres / 2 / h)));

  const medium<double> m(g, parts, ground, time_step, varying_density ? &density : nullptr);
  propagator<double> wave(g, parts);
  traces<double> sources(parts, from, steps), receivers(parts, to, steps);
  sources.write(samples);
  for (std::int64_t t = 0; t < steps; ++t) wave.step(m, &sources, &receivers, t);
  std::vector<double> all = receivers.read();
  for (std::size_t i = 0; i < all.size(); ++i) all[i] *= root(to[i % to.size()]);
  const auto stride = static_cast<std::size_t>(std::lround(every / time_step));
  std::vector<double> chosen;
  for (std::size_t t = 0; t < static_cast<std::size_t>(steps); t += stride)
    chosen.insert(chosen.end(), all.begin() + static_cast<std::ptrdiff_t>(t * to.size()),
                  all.begin() + static_cast<std::ptrdiff_t>((t + 1) * to.size()));
  return chosen;
}

/// Returns the order of the error in a step length, from results with 1, 1/2 and 1/4 of this length.
double order_of(const std::vector<double>& whole, const std::vector<double>& half, const std::vector<double>& quarter) {
  return std::log2(norm(difference(whole, half)) / norm(difference(half, quarter)));
}

void expect_convergence_of(std::int64_t order, bool varying_density = false) {
  constexpr double step = 1e-3;
  const auto records = [&](double h) { return records_of_a_pulse(h, step, step, order, varying_density); };
  const double found = order_of(records(20), records(10), records(5));
  ::testing::Test::RecordProperty("order", std::to_string(found));
  const auto wanted = static_cast<double>(order);
  EXPECT_NEAR(found, wanted, 0.2 * wanted);
}

TEST(Convergence, InSpaceIsOfFourthOrder) { expect_convergence_of(4); }
TEST(Convergence, InSpaceIsOfEighthOrder) { expect_convergence_of(8); }
TEST(Convergence, InSpaceIsOfTwelfthOrder) { expect_convergence_of(12); }
TEST(Convergence, InSpaceIsOfSixteenthOrder) { expect_convergence_of(16); }

TEST(Convergence, WithVaryingDensityToo) {
  expect_convergence_of(4, true);
  expect_convergence_of(8, true);
}

TEST(Convergence, InTimeIsOfSecondOrder) {
  constexpr double step = 2e-3;
  const double order = order_of(records_of_a_pulse(10, step, step), records_of_a_pulse(10, step / 2, step),
                                records_of_a_pulse(10, step / 4, step));
  RecordProperty("order", std::to_string(order));
  EXPECT_NEAR(order, 2, 0.1 * 2);
}

TEST(Adjoint, MigrationIsTheAdjointOfScattering) {
  // A perturbation r of the ground scatters r p from each cell, where p is the field without the perturbation.
  // Migration correlates p with the adjoint field. So <scattered records, d> = <r, image of d>.
  constexpr std::int64_t nx = 40, nz = 30, steps = 150;
  boundaries edges;
  edges.sponge = 10;
  const experiment e = make_experiment(layered(nx, 1, nz), 3750, 0.9, device_count(), edges);
  const medium<double> m(e.cells, e.parts, e.ground, e.time_step);
  propagator<double> wave(e.cells, e.parts);
  const kept_fields<double> kept(e.cells, e.parts, steps);
  const stack<double> onto(e.cells, e.parts);
  std::mt19937 random(11);
  std::normal_distribution<double> normal;

  traces<double> source(e.parts, {e.cells.cell(12, 0, 4)}, steps);
  source.write(ricker_of<double>(25, e.time_step, steps));
  for (std::int64_t t = 0; t < steps; ++t) {
    wave.keep(kept, t);
    wave.step(m, &source, nullptr, t);
  }

  std::vector<point> all;
  std::vector<double> perturbation;
  for (std::int64_t x = 0; x < nx; ++x)
    for (std::int64_t z = 0; z < nz; ++z) {
      all.push_back(e.cells.cell(x, 0, z));
      perturbation.push_back(normal(random));
    }
  std::vector<double> secondary(all.size() * steps);
  for (std::int64_t t = 0; t < steps; ++t) {
    std::size_t i = 0;
    for (int d = 0; d < e.parts.devices(); ++d)
      for (const double p : kept.on(d, t)) {
        secondary[static_cast<std::size_t>(t) * all.size() + i] = perturbation[i] * p;
        ++i;
      }
    ASSERT_EQ(i, all.size());
  }
  const std::vector<point> receivers{e.cells.cell(3, 0, 2), e.cells.cell(20, 0, 2), e.cells.cell(37, 0, 2)};
  const std::vector<double> scattered = record<double>(e, all, secondary, receivers);

  std::vector<double> d(scattered.size());
  for (double& v : d) v = normal(random);
  traces<double> back(e.parts, receivers, steps);
  back.write(d);
  wave.reset();
  for (std::int64_t t = steps - 1; t >= 0; --t) {
    wave.correlate(kept, t, onto);
    wave.step(m, &back, nullptr, t);
  }
  double left = 0, right = 0;
  for (std::size_t i = 0; i < d.size(); ++i) left += scattered[i] * d[i];
  for (std::size_t i = 0; i < perturbation.size(); ++i) right += perturbation[i] * onto.image[i];
  const double error = std::abs(left - right) / (norm(scattered) * norm(d));
  RecordProperty("linearised", scientific(error));
  EXPECT_GT(std::abs(left), 0);
  EXPECT_LE(error, 1e-11);
}

}  // namespace
}  // namespace hpe::rtm::testing
