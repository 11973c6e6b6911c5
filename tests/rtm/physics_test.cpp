// Properties of the discrete wave equation.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/rtm/experiment.h"

namespace hpe::rtm::testing {
namespace {

using kernels::point;

double largest(const std::vector<float>& v) {
  double most = 0;
  for (const float x : v) most = std::max(most, std::isfinite(x) ? std::abs(static_cast<double>(x)) : HUGE_VAL);
  return most;
}

/// The largest value of the field 2,000 steps after a spike in a reflecting box.
double after_two_thousand_steps(std::int64_t ny, double part_of_limit) {
  boundaries edges;
  edges.sponge = 0;
  const experiment e =
      make_experiment(make_volume(40, ny, 36, spacing, 2000), 2000, part_of_limit, device_count(), edges);
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

TEST(Stability, JustAboveTheLimitBlowsUp) {
  EXPECT_GT(after_two_thousand_steps(1, 1.01), 1e6);
  EXPECT_GT(after_two_thousand_steps(34, 1.01), 1e6);
}

/// The reflection of the sponge in decibels: the largest difference from the records in a ground without edges, at
/// points everywhere in the model, divided by the largest recorded value.
double residue(double velocity, double fastest, double frequency) {
  constexpr std::int64_t nx = 120, nz = 100, more = 170;
  experiment with_edges =
      make_experiment(make_volume(nx, 1, nz, spacing, static_cast<float>(velocity)), fastest, 0.9, 1);
  experiment without = make_experiment(
      make_volume(nx + 2 * more, 1, nz + 2 * more, spacing, static_cast<float>(velocity)), fastest, 0.9, 1);
  // Long enough for the wave to cross the model twice, but not to come back from the edges of the larger model.
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
  const double slow = residue(1500, 4500, 16), middle = residue(2500, 4500, 16), fast = residue(4500, 4500, 16);
  RecordProperty("residue_db_1500", std::to_string(slow));
  RecordProperty("residue_db_2500", std::to_string(middle));
  RecordProperty("residue_db_4500", std::to_string(fast));
  EXPECT_LE(slow, -30);
  EXPECT_LE(middle, -30);
  EXPECT_LE(fast, -30);
}

TEST(Boundary, FreeSurfaceTurnsTheSign) {
  // A wave that runs up and is reflected: it comes from the mirror image of the source, with reversed sign.
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

volume layered(std::int64_t nx, std::int64_t ny, std::int64_t nz) {
  volume v = make_volume(nx, ny, nz, spacing);
  for (std::int64_t x = 0; x < nx; ++x)
    for (std::int64_t y = 0; y < ny; ++y)
      for (std::int64_t z = 0; z < nz; ++z)
        v.at(x, y, z) =
            static_cast<float>(1500 + 900 * (4 * z > nz + x) + 1100 * (2 * z > nz + y) + 3 * static_cast<double>(x));
  return v;
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

/// | <F q, d> - <q, F* d> | over |F q| |d|, where q are the sources, F q the records at the receivers, and F* the steps
/// backward in time from the receivers to the sources.
template <class T>
double dot_product_error(std::int64_t ny) {
  boundaries edges;
  edges.sponge = 10;
  const experiment e = make_experiment(layered(50, ny, 40), 3750, 0.9, device_count(), edges);
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
}

}  // namespace
}  // namespace hpe::rtm::testing
