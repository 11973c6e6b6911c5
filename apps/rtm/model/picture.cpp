#include "apps/rtm/model/picture.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "apps/pictures/chart.h"

namespace hpe::rtm {

namespace {

using pictures::colour;

/// One plane of a volume, x across and z down.
struct section {
  std::int64_t nx, nz;
  std::vector<double> values;

  [[nodiscard]] double& at(std::int64_t x, std::int64_t z) { return values[static_cast<std::size_t>(x * nz + z)]; }
  [[nodiscard]] double at(std::int64_t x, std::int64_t z) const {
    return values[static_cast<std::size_t>(std::clamp<std::int64_t>(x, 0, nx - 1) * nz +
                                           std::clamp<std::int64_t>(z, 0, nz - 1))];
  }
  /// The value between cells, by linear interpolation.
  [[nodiscard]] double between(double x, double z) const {
    const auto i = static_cast<std::int64_t>(std::floor(x)), k = static_cast<std::int64_t>(std::floor(z));
    const double u = x - static_cast<double>(i), w = z - static_cast<double>(k);
    return (1 - u) * ((1 - w) * at(i, k) + w * at(i, k + 1)) + u * ((1 - w) * at(i + 1, k) + w * at(i + 1, k + 1));
  }
};

section middle(const volume& v) {
  section s{v.nx, v.nz, {}};
  s.values.reserve(static_cast<std::size_t>(v.nx * v.nz));
  for (std::int64_t x = 0; x < v.nx; ++x)
    for (std::int64_t z = 0; z < v.nz; ++z) s.values.push_back(v.at(x, v.ny / 2, z));
  return s;
}

/// Scales all values but the largest fiftieth to -1 .. 1.
void normalise(section& s, double gain) {
  for (std::int64_t x = 0; x < s.nx; ++x)
    for (std::int64_t z = 0; z < s.nz; ++z)
      s.at(x, z) *= std::pow(static_cast<double>(z + 1) / static_cast<double>(s.nz), gain);
  std::vector<double> sizes(s.values.size());
  std::transform(s.values.begin(), s.values.end(), sizes.begin(), [](double v) { return std::abs(v); });
  const auto place = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() * 98 / 100);
  std::nth_element(sizes.begin(), place, sizes.end());
  const double largest = *place > 0 ? *place : 1;
  for (double& v : s.values) v = std::clamp(v / largest, -1.0, 1.0);
}

/// Whether the velocity jumps by more than 4 percent between a cell and the next across or down.
bool jumps(const section& velocity, std::int64_t x, std::int64_t z) {
  const double here = velocity.at(x, z);
  const double change = std::max(std::abs(velocity.at(x + 1, z) - here), std::abs(velocity.at(x, z + 1) - here));
  return change > 0.04 * here;
}

/// Panels one above the other, each with axes.
class panels {
 public:
  panels(const section& s, double spacing, std::int64_t count, std::int64_t width)
      : zoom_(std::clamp(
            static_cast<double>(width - pictures::room_left - pictures::room_right) / static_cast<double>(s.nx), 0.05,
            3.0)),
        across_(std::max<std::int64_t>(1, static_cast<std::int64_t>(zoom_ * static_cast<double>(s.nx)))),
        down_(std::max<std::int64_t>(1, static_cast<std::int64_t>(zoom_ * static_cast<double>(s.nz)))),
        kilometres_per_pixel_(spacing / zoom_ / 1000),
        picture_(pictures::room_left + across_ + pictures::room_right, count * (pictures::room_above + down_) + below) {
  }

  /// Draws panel `number`, counted from the top; shade gives the colour at a place in cells.
  template <class Shade>
  void draw(std::int64_t number, Shade shade) {
    const pictures::area where{pictures::room_left, pictures::room_above + number * (down_ + pictures::room_above),
                               across_, down_};
    for (std::int64_t j = 0; j < down_; ++j)
      for (std::int64_t i = 0; i < across_; ++i)
        picture_.put(where.left + i, where.top + j,
                     shade((static_cast<double>(i) + 0.5) / zoom_ - 0.5, (static_cast<double>(j) + 0.5) / zoom_ - 0.5));
    pictures::draw_axes(picture_, where, {kilometres_per_pixel_, "km"});
  }

  [[nodiscard]] pictures::picture take() { return std::move(picture_); }

 private:
  static constexpr std::int64_t below = 8;

  double zoom_;
  std::int64_t across_, down_;
  double kilometres_per_pixel_;
  pictures::picture picture_;
};

}  // namespace

pictures::picture draw(const volume& velocity, const volume& image, double gain, std::int64_t width) {
  const section ground = middle(velocity);
  section reflectors = middle(image);
  normalise(reflectors, gain);
  const auto extremes = std::minmax_element(ground.values.begin(), ground.values.end());
  const double slowest = *extremes.first, range = std::max(*extremes.second - slowest, 1.0);

  const auto grey = [&](double x, double z) {
    const double v = 127.5 - 127.5 * reflectors.between(x, z);
    return colour{v, v, v};
  };
  panels p(ground, velocity.spacing.x, 3, width);
  p.draw(0, [&](double x, double z) { return pictures::blue_to_yellow((ground.between(x, z) - slowest) / range); });
  p.draw(1, grey);
  p.draw(2, [&](double x, double z) {
    return jumps(ground, std::lround(x), std::lround(z)) ? colour{230, 60, 30} : grey(x, z);
  });
  return p.take();
}

namespace {

/// The ends of a colour bar for values of both signs.
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

std::vector<float> middle_values(const volume& v) {
  const section s = middle(v);
  return {s.values.begin(), s.values.end()};
}

}  // namespace

pictures::picture draw_velocities(const volume& velocity, const std::string& title, std::int64_t width) {
  const std::vector<float> values = middle_values(velocity);
  const auto [slow, fast] = std::minmax_element(values.begin(), values.end());
  return draw_plane(velocity, values, {title, {}, {}, "m/s", *slow, *fast, pictures::blue_to_yellow}, width);
}

pictures::picture draw_image(const volume& image, const std::string& title, double gain, std::int64_t width) {
  std::vector<float> values = middle_values(image);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double depth =
        static_cast<double>(static_cast<std::int64_t>(i) % image.nz + 1) / static_cast<double>(image.nz);
    values[i] *= static_cast<float>(std::pow(depth, gain));
  }
  const double clip = clip_of(values);
  for (float& v : values) v = static_cast<float>(v / clip);
  return draw_plane(image, values, {title, {}, {}, "image", -1, 1, pictures::white_to_black}, width);
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
