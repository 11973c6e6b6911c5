#pragma once

/// Support for the tests of the application: small models, and runs of the wave propagation with a list of sources and
/// a list of receivers.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "apps/rtm/grid.h"
#include "apps/rtm/migration.h"
#include "apps/rtm/model/volume.h"
#include "apps/rtm/wave.h"

namespace hpe::rtm::testing {

inline constexpr double spacing = 10;

struct experiment {
  volume ground;
  double time_step;
  grid cells;
  decomposition parts;
  std::shared_ptr<const volume> density = nullptr;
};

/// Returns an experiment whose time step is part_of_limit times the longest stable time step for `fastest` m/s.
/// density: null means a constant density.
inline experiment make_experiment(volume ground, double fastest, double part_of_limit, int devices,
                                  boundaries edges = {}, std::int64_t order = usual_order,
                                  std::shared_ptr<const volume> density = nullptr) {
  const double step = part_of_limit * stable_step(ground, density.get(), edges, fastest, order);
  const grid g = make_grid(ground.nx, ground.ny, ground.nz, ground.spacing, edges, part_of_limit, order);
  return {std::move(ground), step, g, decompose(g.layout, devices, sizeof(float)), std::move(density)};
}

/// Returns a random density for each cell: 1000 or 1000 * contrast.
inline std::shared_ptr<const volume> random_densities(const volume& ground, float contrast) {
  std::mt19937 random(17);
  auto density = std::make_shared<volume>(ground);
  for (float& value : density->values) value = random() % 2 == 0 ? 1000 : 1000 * contrast;
  return density;
}

/// Returns the records at `to` while `samples` ([step][source]) are injected at `from`. backwards: with descending
/// steps.
template <class T>
std::vector<T> record(const experiment& e, const std::vector<kernels::point>& from, const std::vector<T>& samples,
                      const std::vector<kernels::point>& to, bool backwards = false) {
  const auto steps = static_cast<std::int64_t>(samples.size() / from.size());
  const medium<T> m(e.cells, e.parts, e.ground, e.time_step, e.density.get());
  propagator<T> wave(e.cells, e.parts);
  traces<T> sources(e.parts, from, steps), receivers(e.parts, to, steps);
  sources.write(samples);
  for (std::int64_t i = 0; i < steps; ++i) wave.step(m, &sources, &receivers, backwards ? steps - 1 - i : i);
  return receivers.read();
}

template <class T>
double norm(const std::vector<T>& v) {
  double sum = 0;
  for (const T x : v) sum += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(sum);
}

template <class T>
std::vector<T> difference(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> d(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) d[i] = a[i] - b[i];
  return d;
}

template <class T>
std::vector<T> ricker_of(double frequency, double time_step, std::int64_t steps) {
  const std::vector<float> w = ricker(frequency, time_step, steps);
  return {w.begin(), w.end()};
}

/// Formats a value for a property in the test report.
inline std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", value);
  return text;
}

}  // namespace hpe::rtm::testing
