#include "apps/rtm/picture.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace hpe::rtm {

namespace {

using pictures::colour;

/// Dark blue over green to yellow, as value goes from 0 to 1.
colour velocity_colour(double value) {
  static constexpr colour stops[] = {{40, 20, 90}, {45, 85, 150}, {30, 145, 140}, {100, 200, 90}, {250, 230, 60}};
  const double place = std::clamp(value, 0.0, 1.0) * 4;
  const auto i = std::min<std::size_t>(static_cast<std::size_t>(place), 3);
  const double part = place - static_cast<double>(i);
  colour c;
  for (std::size_t k = 0; k < 3; ++k) c[k] = stops[i][k] + part * (stops[i + 1][k] - stops[i][k]);
  return c;
}

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
  panels p(ground, velocity.spacing, 3, width);
  p.draw(0, [&](double x, double z) { return velocity_colour((ground.between(x, z) - slowest) / range); });
  p.draw(1, grey);
  p.draw(2, [&](double x, double z) {
    return jumps(ground, std::lround(x), std::lround(z)) ? colour{230, 60, 30} : grey(x, z);
  });
  return p.take();
}

}  // namespace hpe::rtm
