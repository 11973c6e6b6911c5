#include "apps/rtm/records.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hpe::rtm {

namespace {

namespace segy = files::segy;
using segy::in_trace::depth_scalar, segy::in_trace::scalar;

constexpr double microseconds = 1e6, milliseconds = 1e3, feet = 0.3048;

/// A place in the survey's coordinates, in metres.
struct place {
  double x, y, depth;
};

place source_of(const segy::header& h, double metre) {
  return {metre * h.get_scaled(segy::in_trace::source_x, scalar),
          metre * h.get_scaled(segy::in_trace::source_y, scalar),
          metre * h.get_scaled(segy::in_trace::source_depth, depth_scalar)};
}

place receiver_of(const segy::header& h, double metre) {
  return {metre * h.get_scaled(segy::in_trace::receiver_x, scalar),
          metre * h.get_scaled(segy::in_trace::receiver_y, scalar),
          -metre * h.get_scaled(segy::in_trace::receiver_elevation, depth_scalar)};
}

place place_of(const kernels::point& cell, const volume& model) {
  return {model.x0 + cell.x * model.spacing.x, model.y0 + cell.y * model.spacing.y, cell.z * model.spacing.z};
}

/// Returns the cell that is nearest to `p`. A model of one plane represents all values of y. Throws bad_input if `p` is
/// outside the model; `what` names the point in the message.
kernels::point cell_of(const place& p, const volume& model, const std::string& what) {
  const double x = (p.x - model.x0) / model.spacing.x, y = model.ny == 1 ? 0 : (p.y - model.y0) / model.spacing.y,
               z = p.depth / model.spacing.z;
  const auto inside = [](double cell, std::int64_t cells) {
    return cell >= -0.5 && cell < static_cast<double>(cells) - 0.5;
  };
  if (!inside(x, model.nx) || !inside(y, model.ny) || !inside(z, model.nz))
    throw bad_input(
        fmt::format("{} at x = {} m, y = {} m, depth {} m lies outside the model: x from {} to {} m, y from {} "
                    "to {} m, depth to {} m",
                    what, p.x, p.y, p.depth, model.x0, model.x0 + static_cast<double>(model.nx - 1) * model.spacing.x,
                    model.y0, model.y0 + static_cast<double>(model.ny - 1) * model.spacing.y,
                    static_cast<double>(model.nz - 1) * model.spacing.z));
  return {static_cast<std::int32_t>(std::lround(x)), static_cast<std::int32_t>(std::lround(y)),
          static_cast<std::int32_t>(std::lround(z))};
}

}  // namespace

std::vector<float> resample(const std::vector<std::vector<double>>& samples, double interval, double begin, double step,
                            std::int64_t steps) {
  constexpr std::int64_t lobes = 8;
  std::vector<float> result(static_cast<std::size_t>(steps) * samples.size());
  const auto count = static_cast<std::int64_t>(samples.empty() ? 0 : samples[0].size());
  for (std::int64_t t = 0; t < steps; ++t) {
    const double at = (static_cast<double>(t) * step - begin) / interval;
    if (at < -lobes || at > static_cast<double>(count + lobes)) continue;
    const auto before = static_cast<std::int64_t>(std::floor(at + 1e-9));
    double weights[2 * lobes];
    for (std::int64_t k = 0; k < 2 * lobes; ++k) {
      const double u = at - static_cast<double>(before + k - lobes + 1);
      const double window = std::abs(u) < lobes ? 0.5 + 0.5 * std::cos(std::numbers::pi * u / lobes) : 0;
      weights[k] = std::abs(u) < 1e-9 ? 1 : window * std::sin(std::numbers::pi * u) / (std::numbers::pi * u);
    }
    const std::int64_t from = std::max<std::int64_t>(0, before - lobes + 1), to = std::min(count, before + lobes + 1);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      double sum = 0;
      for (std::int64_t j = from; j < to; ++j)
        sum += weights[j - before + lobes - 1] * samples[i][static_cast<std::size_t>(j)];
      result[static_cast<std::size_t>(t) * samples.size() + i] = static_cast<float>(sum);
    }
  }
  return result;
}

segy::header records_header(segy::sample_format format, std::uint64_t samples, double interval,
                            const std::string& title, const std::string& run) {
  segy::header head =
      segy::make_header(format, samples, interval * microseconds,
                        {"Shot records, modelled by hpe rtm model", title,
                         "Coordinates and depths in metres with scalars; time 0 is the first sample",
                         "Field record: the number of the shot; channel: the number of the receiver", "Run " + run});
  head.set(segy::in_file::sorting, 1);
  return head;
}

std::vector<segy::trace> traces_of(const segy::header& head, const placed_shot& s, const std::vector<float>& data,
                                   std::int64_t stride, const volume& model) {
  const std::size_t receivers = s.where.receivers.size();
  const double furthest =
      std::max(std::abs(model.x0), std::abs(model.y0)) +
      std::max({static_cast<double>(model.nx) * model.spacing.x, static_cast<double>(model.ny) * model.spacing.y,
                static_cast<double>(model.nz) * model.spacing.z});
  segy::trace t = segy::make_trace(head);
  t.head.set(scalar, segy::scalar_for(furthest));
  t.head.set(depth_scalar, segy::scalar_for(furthest));
  t.head.set(segy::in_trace::shot, s.number);
  const place source = place_of(s.where.source, model);
  t.head.set_scaled(segy::in_trace::source_x, scalar, source.x);
  t.head.set_scaled(segy::in_trace::source_y, scalar, source.y);
  t.head.set_scaled(segy::in_trace::source_depth, depth_scalar, source.depth);
  std::vector<segy::trace> all(receivers, t);
  for (std::size_t i = 0; i < receivers; ++i) {
    const place at = place_of(s.where.receivers[i], model);
    segy::header& h = all[i].head;
    h.set(segy::in_trace::channel, static_cast<std::int64_t>(i) + 1);
    h.set_scaled(segy::in_trace::receiver_x, scalar, at.x);
    h.set_scaled(segy::in_trace::receiver_y, scalar, at.y);
    h.set_scaled(segy::in_trace::receiver_elevation, depth_scalar, -at.depth);
    for (std::size_t j = 0; j < all[i].samples.size(); ++j)
      all[i].samples[j] = data[j * static_cast<std::size_t>(stride) * receivers + i];
  }
  return all;
}

shot_file::shot_file(const std::string& path, const volume& model) : file_(path) {
  constexpr std::int64_t dead = 2, last_auxiliary = 8;
  const double metre = file_.head().get(segy::in_file::unit) == 2 ? feet : 1;
  if (!(file_.shape().interval > 0))
    throw bad_input(path +
                    " states no sample interval (microseconds in bytes 3217 and 3218, or in 117 and 118 of its first "
                    "trace)");
  place last{};
  for (std::uint64_t n = 0; n < file_.traces(); ++n) {
    const segy::header h = file_.read_header(n);
    if (const std::int64_t kind = h.get(segy::in_trace::kind); kind >= dead && kind <= last_auxiliary) continue;
    if (const std::int64_t unit = h.get(segy::in_trace::coordinate_unit); unit > 1)
      throw bad_input(
          fmt::format("{}, trace {}: its coordinates are angles (bytes 89 and 90 are {}); expected lengths (0 or 1)",
                      path, n + 1, unit));
    const place source = source_of(h, metre), receiver = receiver_of(h, metre);
    const std::int64_t number = h.get(segy::in_trace::shot);
    if (shots_.empty() || shots_.back().number != number || source.x != last.x || source.y != last.y) {
      shots_.push_back({number, {cell_of(source, model, fmt::format("{}, trace {}: the source", path, n + 1)), {}}});
      traces_.emplace_back();
      last = source;
    }
    shots_.back().where.receivers.push_back(
        cell_of(receiver, model, fmt::format("{}, trace {}: the receiver", path, n + 1)));
    traces_.back().push_back(n);
  }
  if (shots_.empty()) throw bad_input(path + " has only dead and auxiliary traces");
}

double shot_file::interval() const { return file_.shape().interval / microseconds; }
double shot_file::length() const { return static_cast<double>(file_.shape().samples - 1) * interval(); }

std::vector<float> shot_file::data(std::size_t number, double shift, double step, std::int64_t steps) const {
  std::vector<std::vector<double>> samples;
  double delay = 0;
  for (const std::uint64_t n : traces_.at(number)) {
    segy::trace t = file_.read(n);
    const double here = static_cast<double>(t.head.get(segy::in_trace::delay)) / milliseconds;
    if (!samples.empty() && here != delay)
      throw bad_input(fmt::format("{}, trace {}: its delay is {} s, but the delay of other traces of the shot is {} s",
                                  file_.path(), n + 1, here, delay));
    delay = here;
    for (const double s : t.samples)
      if (!std::isfinite(s))
        throw bad_input(fmt::format("{}, trace {}: a sample is not a finite number", file_.path(), n + 1));
    samples.push_back(std::move(t.samples));
  }
  return resample(samples, interval(), delay + shift, step, steps);
}

}  // namespace hpe::rtm
