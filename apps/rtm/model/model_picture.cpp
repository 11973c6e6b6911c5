#include "apps/rtm/model/model_picture.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "apps/pictures/chart.h"

namespace hpe::rtm {

namespace {

using pictures::colour;

/// Returns the values of the middle plane along y, with x across and z down.
std::vector<float> middle_values(const volume& v) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(v.nx * v.nz));
  for (std::int64_t x = 0; x < v.nx; ++x)
    for (std::int64_t z = 0; z < v.nz; ++z) values.push_back(v.at(x, v.ny / 2, z));
  return values;
}

/// Whether the velocity in the middle plane changes by more than 4 percent from a cell to the next cell across or down.
bool jumps(const volume& velocity, std::int64_t x, std::int64_t z) {
  const auto at = [&](std::int64_t i, std::int64_t k) {
    return velocity.at(std::min(i, velocity.nx - 1), velocity.ny / 2, std::min(k, velocity.nz - 1));
  };
  const float here = at(x, z);
  return std::max(std::abs(at(x + 1, z) - here), std::abs(at(x, z + 1) - here)) > 0.04F * here;
}

/// Returns the absolute value at both ends of a colour bar: the 98th percentile of the absolute values; 1 if that is 0.
double clip_of(const std::vector<float>& values) {
  constexpr double share = 0.98;
  const double clip = pictures::percentile_of_sizes(values, share);
  return clip > 0 ? clip : 1;
}

pictures::picture draw_plane(const volume& v, const std::vector<float>& values, pictures::chart c, std::int64_t width) {
  c.across = {"x [m]", v.x0, v.spacing.x};
  c.down = {"depth [m]", 0, v.spacing.z};
  return pictures::draw(c, v.nx, v.nz, values, width);
}

}  // namespace

pictures::picture draw_velocities(const volume& velocity, const std::string& title, std::int64_t width) {
  const std::vector<float> values = middle_values(velocity);
  const auto [slow, fast] = std::minmax_element(values.begin(), values.end());
  return draw_plane(velocity, values, {title, {}, {}, "m/s", *slow, *fast, pictures::blue_to_yellow}, width);
}

namespace {

/// Draws the middle plane of an image, amplified by the relative depth to the power `gain`, and clipped. c: the title
/// and the marks of the chart.
pictures::picture draw_amplified(const volume& image, double gain, std::int64_t width, pictures::chart c) {
  std::vector<float> values = middle_values(image);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double depth =
        static_cast<double>(static_cast<std::int64_t>(i) % image.nz + 1) / static_cast<double>(image.nz);
    values[i] *= static_cast<float>(std::pow(depth, gain));
  }
  const double clip = clip_of(values);
  for (float& v : values) v = static_cast<float>(v / clip);
  c.unit = "image";
  c.least = -1;
  c.most = 1;
  c.colours = pictures::white_to_black;
  return draw_plane(image, values, std::move(c), width);
}

}  // namespace

pictures::picture draw_image(const volume& image, const std::string& title, double gain, std::int64_t width) {
  return draw_amplified(image, gain, width, {.title = title});
}

pictures::picture draw(const volume& velocity, const volume& image, double gain, std::int64_t width) {
  const auto interfaces = [&](std::int64_t x, std::int64_t z) {
    return jumps(velocity, x, z) ? std::optional(colour{230, 60, 30}) : std::nullopt;
  };
  return pictures::stacked(std::vector{
      draw_velocities(velocity, "Velocities", width), draw_image(image, "Image", gain, width),
      draw_amplified(image, gain, width, {.title = "Image, and interfaces of the model in red", .over = interfaces})});
}

pictures::picture draw_gather(const std::vector<float>& data, std::int64_t samples, double interval,
                              const std::string& title, std::int64_t width) {
  const auto receivers = static_cast<std::int64_t>(data.size()) / samples;
  std::vector<float> columns(data.size());
  for (std::int64_t t = 0; t < samples; ++t)
    for (std::int64_t i = 0; i < receivers; ++i)
      columns[static_cast<std::size_t>(i * samples + t)] = data[static_cast<std::size_t>(t * receivers + i)];
  const double clip = clip_of(columns);
  for (float& v : columns) v = static_cast<float>(v / clip);
  const pictures::chart c{
      title, {"receiver", 1, 1}, {"time [s]", 0, interval}, "pressure", -1, 1, pictures::white_to_black, false};
  return pictures::draw(c, receivers, samples, columns, width);
}

}  // namespace hpe::rtm
