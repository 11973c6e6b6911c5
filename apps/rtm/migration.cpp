#include "apps/rtm/migration.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hpe::rtm {

namespace {

constexpr double pi = 3.14159265358979323846;

double fastest(const volume& a, const volume& b) {
  return std::max(*std::max_element(a.values.begin(), a.values.end()),
                  *std::max_element(b.values.begin(), b.values.end()));
}

/// From 0 to 1 as x goes from 0 to 1, smoothly, and constant beyond.
double ramp(double x) { return 0.5 - 0.5 * std::cos(pi * std::clamp(x, 0.0, 1.0)); }

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// The grid of both models. Throws bad_input if the time step is not stable on it.
grid checked_grid(const volume& truth, const volume& smooth, const migration_settings& s) {
  if (truth.nx != smooth.nx || truth.ny != smooth.ny || truth.nz != smooth.nz || truth.spacing != smooth.spacing)
    throw bad_input("the true and the smooth model must have the same cells");
  const int dimensions = truth.ny == 1 ? 2 : 3;
  const double limit = stable_step(dimensions, truth.spacing, fastest(truth, smooth));
  if (!(s.time_step > 0) || s.time_step > limit)
    throw bad_input("a time step of " + number(s.time_step * 1e3) + " ms: with cells of " + number(truth.spacing) +
                    " m and velocities up to " + number(fastest(truth, smooth)) +
                    " m/s it must be positive and at most " + number(limit * 1e3) + " ms to be stable");
  if (s.steps < 1 || s.keep_every < 1)
    throw bad_input("the number of steps, and of steps between kept fields, must be at least 1");
  return make_grid(truth.nx, truth.ny, truth.nz, truth.spacing, s.edges, s.time_step / limit);
}

std::int64_t kept_count(const migration_settings& s) { return (s.steps + s.keep_every - 1) / s.keep_every; }

decomposition checked_parts(const grid& g, const migration_settings& s) {
  const int available = device_count();
  if (s.devices < 1 || s.devices > available)
    throw bad_input(std::to_string(s.devices) + " devices: there are " + std::to_string(available) +
                    "; HPE_DEVICES=soft:N gives N");
  if (s.devices > g.layout.nx)
    throw bad_input(std::to_string(s.devices) + " devices cannot share " + std::to_string(g.layout.nx) + " planes");
  // With 768^3 points, GPUs lose more time by small launches of the rims than by waiting for each other at the end of a
  // step (bench/rtm.cpp); docs/measurements.md has a size at which they do not.
  const bool gpus = device_info(0).kind == HPE_DEVICE_CUDA;
  decomposition parts =
      decompose(g.layout, s.devices, sizeof(float), gpus ? launch_order::at_once : launch_order::rims_first);
  const std::size_t needed = kept_fields<float>::bytes_per_device(g, parts, kept_count(s));
  for (int d = 0; d < s.devices; ++d)
    if (const auto free = device_info(d).memory_free; needed > free)
      throw bad_input("keeping " + std::to_string(kept_count(s)) + " wave fields takes " +
                      std::to_string(needed >> 20) + " MiB on each device, and device " + std::to_string(d) + " has " +
                      std::to_string(free >> 20) +
                      " MiB free; keep fewer (--keep-every), use more devices, or give "
                      "soft devices more memory (HPE_SOFT_MEMORY)");
  return parts;
}

}  // namespace

double ricker_delay(double frequency) { return 1.4 / frequency; }

std::vector<float> ricker(double frequency, double time_step, std::int64_t steps) {
  std::vector<float> w(static_cast<std::size_t>(steps));
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double u = pi * frequency * (static_cast<double>(i) * time_step - ricker_delay(frequency));
    w[i] = static_cast<float>((1 - 2 * u * u) * std::exp(-u * u));
  }
  return w;
}

std::vector<float> adjoint_source(const std::vector<float>& data, std::int64_t steps, double time_step) {
  const std::size_t n = data.size() / static_cast<std::size_t>(steps);
  const auto last = static_cast<std::size_t>(steps) - 1;
  std::vector<float> source(data.size());
  for (std::size_t t = 1; t < last; ++t) {
    const double fade = ramp(static_cast<double>(last - t) / (0.05 * static_cast<double>(last) + 1));
    const double factor = -fade / (2 * time_step);
    for (std::size_t i = 0; i < n; ++i)
      source[t * n + i] = static_cast<float>(factor * (data[(t + 1) * n + i] - data[(t - 1) * n + i]));
  }
  return source;
}

migration::migration(const volume& truth, const volume& smooth, const migration_settings& settings, progress tell)
    : settings_(settings),
      tell_(std::move(tell)),
      nx_(truth.nx),
      ny_(truth.ny),
      nz_(truth.nz),
      grid_(checked_grid(truth, smooth, settings)),
      parts_(checked_parts(grid_, settings)),
      truth_values_(truth),
      truth_(grid_, parts_, truth, settings.time_step),
      smooth_(grid_, parts_, smooth, settings.time_step),
      wave_(grid_, parts_),
      kept_(grid_, parts_, kept_count(settings)),
      stack_(grid_, parts_) {}

std::vector<kernels::point> migration::on_grid(const std::vector<kernels::point>& cells) const {
  std::vector<kernels::point> points;
  points.reserve(cells.size());
  for (const kernels::point& c : cells) {
    if (c.x < 0 || c.x >= nx_ || c.y < 0 || c.y >= ny_ || c.z < 0 || c.z >= nz_)
      throw bad_input("a source or receiver at cell (" + std::to_string(c.x) + ", " + std::to_string(c.y) + ", " +
                      std::to_string(c.z) + ") lies outside the model of " + std::to_string(nx_) + " x " +
                      std::to_string(ny_) + " x " + std::to_string(nz_) + " cells");
    points.push_back(grid_.cell(c.x, c.y, c.z));
  }
  return points;
}

void migration::report(const std::string& what, std::int64_t done) const {
  constexpr std::int64_t interval = 200;
  if (done % interval != 0 && done != settings_.steps) return;
  synchronize();
  constexpr int passes = 3;
  if (tell_) tell_(what, (pass_ + static_cast<double>(done) / static_cast<double>(settings_.steps)) / passes);
}

void migration::forward(const medium<float>& m, const traces<float>& source, const traces<float>& receivers,
                        const std::string& what, bool keep) {
  wave_.reset();
  for (std::int64_t t = 0; t < settings_.steps; ++t) {
    if (keep && t % settings_.keep_every == 0) wave_.keep(kept_, t / settings_.keep_every);
    wave_.step(m, &source, &receivers, t);
    report(what, t + 1);
  }
}

void migration::backward(const traces<float>& receivers) {
  wave_.reset();
  for (std::int64_t t = settings_.steps - 1; t >= 0; --t) {
    if (t % settings_.keep_every == 0) wave_.correlate(kept_, t / settings_.keep_every, stack_);
    wave_.step(smooth_, &receivers, nullptr, t);
    report("migrating", settings_.steps - t);
  }
}

void migration::mute(std::vector<float>& data, const shot& s) const {
  const double period = 1 / settings_.frequency;
  const double velocity = truth_values_.at(s.source.x, s.source.y, s.source.z);
  const std::size_t n = s.receivers.size();
  for (std::size_t i = 0; i < n; ++i) {
    const kernels::point& r = s.receivers[i];
    const double offset =
        grid_.spacing *
        std::hypot(r.x - s.source.x, grid_.ends == kernels::y_ends::closed ? r.y - s.source.y : 0, r.z - s.source.z);
    const double begin = offset / velocity + ricker_delay(settings_.frequency) + period;
    for (std::int64_t t = 0; t < settings_.steps; ++t)
      data[static_cast<std::size_t>(t) * n + i] *=
          static_cast<float>(ramp((static_cast<double>(t) * settings_.time_step - begin) / period));
  }
}

void migration::run(const shot& s) {
  std::vector<kernels::point> at{s.source};
  if (grid_.ends == kernels::y_ends::periodic)  // a line source along y, so that nothing varies along y
    for (std::int32_t y = 0; y < ny_; ++y)
      if (y != s.source.y) at.push_back({s.source.x, y, s.source.z});
  traces<float> source(parts_, on_grid(at), settings_.steps);
  traces<float> receivers(parts_, on_grid(s.receivers), settings_.steps);

  const std::vector<float> wavelet = ricker(settings_.frequency, settings_.time_step, settings_.steps);
  std::vector<float> signatures;
  for (const float w : wavelet) signatures.insert(signatures.end(), at.size(), w);
  source.write(signatures);

  pass_ = 0;
  forward(truth_, source, receivers, "recording", false);
  std::vector<float> data = receivers.read();
  pass_ = 1;
  forward(smooth_, source, receivers, "propagating", true);
  if (settings_.data == preparation::residual) {
    const std::vector<float> predicted = receivers.read();
    for (std::size_t i = 0; i < data.size(); ++i) data[i] -= predicted[i];
  } else {
    mute(data, s);
  }
  receivers.write(adjoint_source(data, settings_.steps, settings_.time_step));
  pass_ = 2;
  backward(receivers);
}

volume migration::image() const {
  volume v = make_volume(nx_, ny_, nz_, grid_.spacing);
  const float* image = stack_.image.data();
  const float* illumination = stack_.illumination.data();
  // epsilon (little) keeps the image small in cells that no source illuminates.
  double mean = 0;
  for (std::size_t i = 0; i < v.values.size(); ++i) mean += illumination[i];
  const double little = 1e-3 * mean / static_cast<double>(v.values.size()) + 1e-30;
  for (std::size_t i = 0; i < v.values.size(); ++i)
    v.values[i] = static_cast<float>(image[i] / (illumination[i] + little));
  return v;
}

volume without_background(const volume& image) {
  volume result = make_volume(image.nx, image.ny, image.nz, image.spacing);
  const auto value = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return image.at(std::clamp<std::int64_t>(x, 0, image.nx - 1), std::clamp<std::int64_t>(y, 0, image.ny - 1),
                    std::clamp<std::int64_t>(z, 0, image.nz - 1));
  };
  for (std::int64_t x = 0; x < image.nx; ++x)
    for (std::int64_t y = 0; y < image.ny; ++y)
      for (std::int64_t z = 0; z < image.nz; ++z) {
        const float here = 6 * value(x, y, z);
        result.at(x, y, z) = here - value(x - 1, y, z) - value(x + 1, y, z) - value(x, y - 1, z) - value(x, y + 1, z) -
                             value(x, y, z - 1) - value(x, y, z + 1);
      }
  return result;
}

}  // namespace hpe::rtm
