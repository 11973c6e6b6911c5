#include "apps/rtm/migration.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "apps/command_line/program.h"

namespace hpe::rtm {

namespace {

constexpr double pi = 3.14159265358979323846;

/// Returns a value that rises smoothly from 0 to 1 as x rises from 0 to 1. Returns 0 for smaller x, and 1 for larger x.
double ramp(double x) { return 0.5 - 0.5 * std::cos(pi * std::clamp(x, 0.0, 1.0)); }

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// Multiplies the samples [step][point] by a factor of each point.
std::vector<float> scaled(std::vector<float> samples, const std::vector<float>& factors) {
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] *= factors[i % factors.size()];
  return samples;
}

/// Makes the grid of a model, or this part's slab of the grid if the team has several parts. Throws bad_input for
/// invalid settings, for example a time step that is not stable on this grid.
grid checked_grid(const volume& model, double fastest, const migration_settings& s, const team& with) {
  const double limit = stable_step(model, s.density.get(), s.edges, fastest, s.order);
  if (!(s.time_step > 0) || s.time_step > limit)
    throw bad_input("a time step of " + number(s.time_step * 1e3) + " ms: with cells of " + model.spacing.text() +
                    " m and velocities up to " + number(fastest) + " m/s it must be positive and at most " +
                    number(limit * 1e3) + " ms to be stable");
  if (!(s.largest_angle > 0 && s.largest_angle <= 90))
    throw bad_input("a largest angle of " + number(s.largest_angle) +
                    " degrees: more than 0 and at most 90 are possible");
  if (s.steps < 1 || s.keep_every < 1)
    throw bad_input("the number of steps and the number of steps between kept fields must both be at least 1");
  grid all = make_grid(model.nx, model.ny, model.nz, model.spacing, s.edges, s.time_step / limit, s.order);
  if (with.parts() == 1) return all;
  return slab_of(all, all.layout.nx * with.part() / with.parts(), all.layout.nx * (with.part() + 1) / with.parts());
}

decomposition checked_parts(const grid& g, const migration_settings& s, const team& with) {
  const int available = device_count();
  if (s.devices < 1 || s.first_device + s.devices > available)
    throw bad_input(std::to_string(s.devices) + " devices: there are " + std::to_string(available) +
                    "; HPE_DEVICES=soft:N provides N soft devices");
  if (s.devices > g.layout.nx)
    throw bad_input(std::to_string(s.devices) + " devices cannot share " + std::to_string(g.layout.nx) + " planes");
  // For 768^3 points, separate small launches for the rims cost GPUs more time than waiting for each other at the end
  // of a step (bench/waves/rtm.cpp). For 448^3 points, the reverse is true (docs/history/measurements-2026-11.md).
  const bool gpus = device_info(0).kind == HPE_DEVICE_CUDA;
  const neighbours beyond{with.part() > 0, with.part() + 1 < with.parts()};
  return decompose(g.layout, s.devices, sizeof(float),
                   gpus && with.parts() == 1 ? launch_order::at_once : launch_order::rims_first, beyond,
                   s.first_device);
}

}  // namespace

double ricker_delay(double frequency) { return 1.4 / frequency; }

double default_frequency(double slowest, double longest_side) { return slowest / (9 * longest_side); }

void check_frequency(const volume& velocity, double frequency) {
  constexpr double least = 2;
  const double slowest = *std::min_element(velocity.values.begin(), velocity.values.end());
  const double longest = longest_side(velocity), cells = slowest / (frequency * longest);
  if (cells < least)
    throw bad_input(
        fmt::format("a wavelet with its peak at {:.4g} Hz: its waves are {:.2g} cells long (cells of {:.4g} m, at "
                    "{:.4g} m/s), but must be at least {} cells long; {:.4g} Hz give the usual 9 cells",
                    frequency, cells, longest, slowest, least, default_frequency(slowest, longest)));
}

std::string estimate(const volume& model, const migration_settings& s, std::size_t receivers, std::size_t shots,
                     int passes) {
  const grid g = make_grid(model.nx, model.ny, model.nz, model.spacing, s.edges, 1, s.order);
  const auto cells = static_cast<double>(model.cells()), field = static_cast<double>(g.layout.size());
  const double media = passes == 3 ? 2 : 1, arrays = s.density == nullptr ? 1 : 2;
  const double record = static_cast<double>(receivers) * static_cast<double>(s.steps);
  // Devices hold two fields, the media, the image and the illumination, and each sample twice. The host holds each
  // sample twice.
  const double on_devices =
      s.at_once * (2 * field + media * arrays * field + (passes > 1 ? 2 * cells : 0) + 2 * record);
  // Host memory must hold this number of arrays of the model's size: the model, a smooth model, the image, its sums,
  // and temporary copies.
  constexpr double copies = 6;
  const double on_host = copies * cells + 2 * s.at_once * record;
  std::string text =
      fmt::format("{} steps for each of {} shots; memory: {}", passes * s.steps, shots,
                  command_line::in_words({sizeof(float) * on_devices, sizeof(float) * on_host}, s.devices));
  if (passes == 1) return text;
  const double bytes = s.keep.bits == 0 ? sizeof(float) : static_cast<double>(s.keep.bits) / 8;
  const std::int64_t count = (s.steps + s.keep_every - 1) / s.keep_every;
  return text + fmt::format("; {} kept wave fields take {} if there is enough space", count,
                            command_line::in_words(s.at_once * bytes * cells * static_cast<double>(count)));
}

double record_length(const volume& velocity, double frequency) {
  double longest = 0;
  for (std::int64_t x = 0; x < velocity.nx; ++x)
    for (std::int64_t y = 0; y < velocity.ny; ++y) {
      double down = 0;
      for (std::int64_t z = 0; z < velocity.nz; ++z) down += velocity.spacing.z / velocity.at(x, y, z);
      longest = std::max(longest, down);
    }
  return 2.5 * longest + 2 * ricker_delay(frequency);
}

std::int64_t default_keep_every(double frequency, double time_step) {
  return std::max<std::int64_t>(1, std::lround(1 / (6 * highest_of_peak * frequency * time_step)));
}

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

team& simulation::alone() {
  static team one;
  return one;
}

simulation::simulation(const volume& model, double fastest, const migration_settings& settings, progress tell,
                       team& with)
    : settings_(settings),
      tell_(std::move(tell)),
      with_(with),
      fastest_(fastest),
      grid_(checked_grid(model, fastest, settings, with)),
      parts_(checked_parts(grid_, settings, with)),
      wave_(grid_, parts_, exchange::direct, with.halo()) {}

medium<float> simulation::medium_of(const volume& velocity) const {
  const kernels::window& m = grid_.whole;
  if (velocity.nx != m.nx || velocity.ny != m.ny || velocity.nz != m.nz || velocity.spacing != grid_.spacing)
    throw bad_input("the model for recording and the model for migration must have the same cells");
  if (fastest(velocity) > fastest_)
    throw bad_input("a velocity of " + number(fastest(velocity)) + " m/s exceeds the largest expected velocity, " +
                    number(fastest_) + " m/s");
  return {grid_, parts_, velocity, settings_.time_step, settings_.density.get()};
}

std::vector<kernels::point> simulation::on_grid(const std::vector<kernels::point>& cells) const {
  const kernels::window& m = grid_.whole;
  std::vector<kernels::point> points;
  points.reserve(cells.size());
  for (const kernels::point& c : cells) {
    if (c.x < 0 || c.x >= m.nx || c.y < 0 || c.y >= m.ny || c.z < 0 || c.z >= m.nz)
      throw bad_input("a source or receiver at cell (" + std::to_string(c.x) + ", " + std::to_string(c.y) + ", " +
                      std::to_string(c.z) + ") lies outside the model of " + std::to_string(m.nx) + " x " +
                      std::to_string(m.ny) + " x " + std::to_string(m.nz) + " cells");
    points.push_back(grid_.cell(c.x, c.y, c.z));
  }
  return points;
}

std::vector<float> simulation::roots_at(const std::vector<kernels::point>& cells) const {
  std::vector<float> roots;
  for (const kernels::point& c : cells)
    roots.push_back(settings_.density == nullptr ? 1.0F : std::sqrt(settings_.density->at(c.x, c.y, c.z)));
  return roots;
}

void simulation::begin_shot(int passes) {
  pass_ = 0;
  passes_ = passes;
}

void simulation::report(const std::string& what, std::int64_t done) {
  constexpr std::int64_t interval = 200;
  const bool ends = done == settings_.steps;
  if (done % interval != 0 && !ends) return;
  parts_.synchronize();
  if (tell_) tell_(what, (pass_ + static_cast<double>(done) / static_cast<double>(settings_.steps)) / passes_);
  if (ends) ++pass_;
}

traces<float> simulation::receivers_of(const shot& s) const { return {parts_, on_grid(s.receivers), settings_.steps}; }

traces<float> simulation::source_of(const shot& s) const {
  std::vector<kernels::point> at{s.source};
  if (grid_.ends == kernels::y_ends::periodic)  // a line source, so that the wave field does not vary along y
    for (std::int32_t y = 0; y < grid_.whole.ny; ++y)
      if (y != s.source.y) at.push_back({s.source.x, y, s.source.z});
  traces<float> source(parts_, on_grid(at), settings_.steps);
  const std::vector<float> wavelet =
      settings_.wavelet.empty() ? ricker(settings_.frequency, settings_.time_step, settings_.steps) : settings_.wavelet;
  const std::vector<float> roots = roots_at(at);
  std::vector<float> signatures;
  for (const float w : wavelet)
    for (const float root : roots) signatures.push_back(w / root);
  source.write(signatures);
  return source;
}

void simulation::forward(const medium<float>& m, const traces<float>& source, const traces<float>& receivers,
                         source_history* history, const std::string& what) {
  wave_.reset();
  for (std::int64_t t = 0; t < settings_.steps; ++t) {
    if (history != nullptr) history->before_step(wave_, t);
    wave_.step(m, &source, &receivers, t);
    report(what, t + 1);
  }
  if (history != nullptr) history->turn(wave_, m, source);
}

void simulation::backward(const medium<float>& m, const traces<float>& receivers, source_history& history,
                          const stack<float>& onto, const std::string& what) {
  wave_.reset();
  for (std::int64_t t = settings_.steps - 1; t >= 0; --t) {
    history.correlate(wave_, t, onto);
    wave_.step(m, &receivers, nullptr, t);
    report(what, settings_.steps - t);
  }
}

std::vector<float> simulation::record(const medium<float>& m, const shot& s, const std::string& what) {
  const traces<float> receivers = receivers_of(s);
  forward(m, source_of(s), receivers, nullptr, what);
  // Each part has the records of its receivers, and zeros for the receivers of other parts.
  std::vector<float> mine = scaled(receivers.read(), roots_at(s.receivers));
  const std::size_t samples = mine.size();
  std::vector<float> all = with_.gather(std::move(mine));
  for (std::size_t i = samples; i < all.size(); ++i)
    all[i % samples] =
        std::bit_cast<float>(std::bit_cast<std::uint32_t>(all[i % samples]) | std::bit_cast<std::uint32_t>(all[i]));
  all.resize(std::min(all.size(), samples));
  return all;
}

migration::migration(simulation& on, const volume& velocity)
    : on_(on),
      velocity_(velocity),
      medium_(on.medium_of(velocity)),
      stack_(on.cells(), on.parts()),
      keeping_(choose_keeping(on.wave(), medium_, stack_, on.shape(), on.settings().keep)),
      history_(make_history(on.shape(), keeping_)) {}

void migration::mute(std::vector<float>& data, const shot& s) const {
  const migration_settings& all = on_.settings();
  const grid& g = on_.cells();
  const double period = 1 / all.frequency, delay = all.wavelet.empty() ? ricker_delay(all.frequency) : all.delay;
  const double velocity = velocity_.at(s.source.x, s.source.y, s.source.z);
  const std::size_t n = s.receivers.size();
  for (std::size_t i = 0; i < n; ++i) {
    const kernels::point& r = s.receivers[i];
    const double along_y = g.ends == kernels::y_ends::closed ? (r.y - s.source.y) * g.spacing.y : 0;
    const double offset = std::hypot((r.x - s.source.x) * g.spacing.x, along_y, (r.z - s.source.z) * g.spacing.z);
    const double begin = offset / (velocity * std::sin(pi / 180 * all.largest_angle)) + delay + period;
    for (std::int64_t t = 0; t < all.steps; ++t)
      data[static_cast<std::size_t>(t) * n + i] *=
          static_cast<float>(ramp((static_cast<double>(t) * all.time_step - begin) / period));
  }
}

void sums::add(const sums& shot) {
  image.resize(std::max(image.size(), shot.image.size()));
  illumination.resize(image.size());
  for (std::size_t i = 0; i < shot.image.size(); ++i) {
    image[i] += shot.image[i];
    illumination[i] += shot.illumination[i];
  }
}

sums migration::migrate(const shot& s, std::vector<float> data) {
  traces<float> receivers = on_.receivers_of(s);
  const traces<float> source = on_.source_of(s);
  on_.forward(medium_, source, receivers, history_.get(), "propagating");
  if (on_.settings().data == preparation::residual) {
    const std::vector<float> predicted = scaled(receivers.read(), on_.roots_at(s.receivers));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] -= predicted[i];
  } else {
    mute(data, s);
  }
  receivers.write(
      scaled(adjoint_source(data, on_.settings().steps, on_.settings().time_step), on_.roots_at(s.receivers)));
  stack_.clear();
  on_.backward(medium_, receivers, *history_, stack_, "migrating");
  return {on_.with().gather({stack_.image.begin(), stack_.image.end()}),
          on_.with().gather({stack_.illumination.begin(), stack_.illumination.end()})};
}

volume migration::image(condition how) const {
  volume v = velocity_;
  const std::vector<float>& image = stacked.image;
  if (image.empty()) throw bad_input("an image needs at least one shot");
  if (how == condition::correlation) {
    v.values = image;
    return v;
  }
  const std::vector<float>& illumination = stacked.illumination;
  // epsilon (`little`) keeps the image small in cells that no source illuminates.
  double mean = 0;
  for (std::size_t i = 0; i < v.values.size(); ++i) mean += illumination[i];
  const double little = 1e-3 * mean / static_cast<double>(v.values.size()) + 1e-30;
  for (std::size_t i = 0; i < v.values.size(); ++i)
    v.values[i] = static_cast<float>(image[i] / (illumination[i] + little));
  return v;
}

volume migration::illumination() const {
  volume v = velocity_;
  v.values = stacked.illumination;
  return v;
}

volume without_background(const volume& image) {
  volume result = image;
  // The weights are those of cells with a height of 1, because the image has no unit.
  const auto weight = [&](double side) {
    return static_cast<float>(image.spacing.z * image.spacing.z / (side * side));
  };
  const float weight_x = weight(image.spacing.x), weight_y = weight(image.spacing.y);
  const auto value = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return image.at(std::clamp<std::int64_t>(x, 0, image.nx - 1), std::clamp<std::int64_t>(y, 0, image.ny - 1),
                    std::clamp<std::int64_t>(z, 0, image.nz - 1));
  };
  for (std::int64_t x = 0; x < image.nx; ++x)
    for (std::int64_t y = 0; y < image.ny; ++y)
      for (std::int64_t z = 0; z < image.nz; ++z) {
        const float twice = 2 * value(x, y, z);
        result.at(x, y, z) = weight_x * (twice - value(x - 1, y, z) - value(x + 1, y, z)) +
                             weight_y * (twice - value(x, y - 1, z) - value(x, y + 1, z)) +
                             (twice - value(x, y, z - 1) - value(x, y, z + 1));
      }
  return result;
}

}  // namespace hpe::rtm
