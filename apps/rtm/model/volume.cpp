#include "apps/rtm/model/volume.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include "apps/files/element_file.h"

namespace hpe::rtm {

namespace {

std::string shape(std::int64_t nx, std::int64_t ny, std::int64_t nz) {
  return std::to_string(nx) + " x " + std::to_string(ny) + " x " + std::to_string(nz);
}

/// Smooths along one axis: `lines` lines of `length` values, `stride` apart; a line begins at first(line).
template <class First>
void smooth_lines(std::vector<float>& values, std::int64_t lines, First first, std::int64_t length, std::int64_t stride,
                  const std::vector<double>& weights) {
  const auto reach = static_cast<std::int64_t>(weights.size()) - 1;
  std::vector<double> line(static_cast<std::size_t>(length + 2 * reach));
  for (std::int64_t l = 0; l < lines; ++l) {
    float* v = values.data() + first(l);
    for (std::int64_t i = -reach; i < length + reach; ++i)
      line[static_cast<std::size_t>(i + reach)] = v[std::clamp<std::int64_t>(i, 0, length - 1) * stride];
    for (std::int64_t i = 0; i < length; ++i) {
      const double* at = line.data() + i + reach;
      double sum = weights[0] * at[0];
      for (std::int64_t k = 1; k <= reach; ++k) sum += weights[static_cast<std::size_t>(k)] * (at[-k] + at[k]);
      v[i * stride] = static_cast<float>(sum);
    }
  }
}

}  // namespace

std::string sides::text() const {
  return x == y && y == z ? fmt::format("{:.4g}", x) : fmt::format("{:.4g} x {:.4g} x {:.4g}", x, y, z);
}

std::string volume::shape() const { return rtm::shape(nx, ny, nz); }

volume make_volume(std::int64_t nx, std::int64_t ny, std::int64_t nz, const sides& spacing, float value) {
  constexpr std::int64_t most = 1'000'000;
  if (nx < 1 || ny < 1 || nz < 1 || nx > most || ny > most || nz > most)
    throw bad_input("a model of " + shape(nx, ny, nz) + " cells: each side must be from 1 to 1000000");
  for (const double side : {spacing.x, spacing.y, spacing.z})
    if (!(side > 0) || !std::isfinite(side)) throw bad_input("the spacing must be a positive number of metres");
  volume v{nx, ny, nz, spacing, {}};
  v.values.assign(static_cast<std::size_t>(v.cells()), value);
  return v;
}

double longest_side(const volume& v) {
  return std::max({v.nx > 1 ? v.spacing.x : 0, v.ny > 1 ? v.spacing.y : 0, v.spacing.z});
}

float fastest(const volume& velocity) { return *std::max_element(velocity.values.begin(), velocity.values.end()); }

volume from_axes(const std::string& name, const raw_format& format, const std::vector<float>& values) {
  std::string axes = format.order;
  std::sort(axes.begin(), axes.end());
  if (axes != "xyz")
    throw bad_input("axis order \"" + format.order +
                    "\": it must name x, y and z once each, the fastest in the file first, as in zyx");
  volume v = make_volume(format.nx, format.ny, format.nz, format.spacing);
  std::int64_t stride[3] = {};  // distances in the file between neighbours along x, y and z, in values
  std::int64_t step = 1;
  for (const char axis : format.order) {
    stride[axis - 'x'] = step;
    step *= axis == 'x' ? v.nx : axis == 'y' ? v.ny : v.nz;
  }
  for (std::int64_t x = 0; x < v.nx; ++x)
    for (std::int64_t y = 0; y < v.ny; ++y)
      for (std::int64_t z = 0; z < v.nz; ++z) {
        const double value =
            values[static_cast<std::size_t>(x * stride[0] + y * stride[1] + z * stride[2])] * format.scale;
        const property& of = format.of;
        if (!(value >= of.least && value <= of.most))
          throw bad_input(fmt::format(
              "{} holds {} {} at cell ({}, {}, {}); {} are from {} to {} {}: are unit, size and axis order right?",
              name, value, of.unit, x, y, z, of.name, of.least, of.most, of.unit));
        v.at(x, y, z) = static_cast<float>(value);
      }
  return v;
}

volume read_raw(const std::string& path, const raw_format& format) {
  if (format.nx < 1 || format.ny < 1 || format.nz < 1)
    throw bad_input("a raw model needs its size as three numbers of cells, each at least 1; got " +
                    shape(format.nx, format.ny, format.nz));
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw bad_input("cannot open " + path + ": " + std::strerror(errno));
  const auto bytes = static_cast<std::int64_t>(file.tellg());
  const double wanted =
      4.0 * static_cast<double>(format.nx) * static_cast<double>(format.ny) * static_cast<double>(format.nz);
  if (static_cast<double>(bytes) != wanted)
    throw bad_input(path + " has " + std::to_string(bytes) + " bytes, but " + shape(format.nx, format.ny, format.nz) +
                    fmt::format(" float32 values take {:.0f}", wanted));
  std::vector<float> raw(static_cast<std::size_t>(bytes) / sizeof(float));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(raw.data()), bytes)) throw bad_input("cannot read " + path);
  return from_axes(path, format, raw);
}

void write_raw(const std::string& path, const volume& v) {
  files::write(path, "f32", {static_cast<std::uint64_t>(v.cells())}, v.values.data(), sizeof(float));
}

volume gardner(const volume& velocity) {
  constexpr float water = 1500, of_water = 1000;
  volume v = velocity;
  for (float& value : v.values)
    value = value <= water ? of_water : static_cast<float>(310 * std::pow(static_cast<double>(value), 0.25));
  return v;
}

volume extrude(const volume& section, std::int64_t planes) {
  if (section.ny != 1 && section.ny != planes)
    throw bad_input("only a section of one plane can be extruded; this model has " + std::to_string(section.ny));
  if (section.ny == planes) return section;
  volume v = make_volume(section.nx, planes, section.nz, section.spacing);
  v.x0 = section.x0;
  v.y0 = section.y0;
  for (std::int64_t x = 0; x < v.nx; ++x)
    for (std::int64_t y = 0; y < planes; ++y)
      std::copy_n(&section.values[section.index(x, 0, 0)], section.nz, &v.at(x, y, 0));
  return v;
}

namespace {

/// Returns the weights of one half of a Gaussian with this standard deviation in cells.
std::vector<double> gaussian(double cells) {
  std::vector<double> weights(static_cast<std::size_t>(std::ceil(3 * cells)) + 1);
  double sum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    weights[k] = std::exp(-0.5 * static_cast<double>(k * k) / (cells * cells));
    sum += (k == 0 ? 1 : 2) * weights[k];
  }
  for (double& w : weights) w /= sum;
  return weights;
}

}  // namespace

volume smooth(const volume& velocity, double deviation, double kept) {
  if (!(deviation > 0)) return velocity;
  volume v = velocity;
  for (float& value : v.values) value = 1 / value;

  const std::int64_t row = v.nz, plane = v.ny * v.nz;
  smooth_lines(
      v.values, v.nx * v.ny, [&](std::int64_t l) { return l * row; }, v.nz, 1, gaussian(deviation / v.spacing.z));
  if (v.ny > 1)
    smooth_lines(
        v.values, v.nx * v.nz, [&](std::int64_t l) { return l / v.nz * plane + l % v.nz; }, v.ny, row,
        gaussian(deviation / v.spacing.y));
  smooth_lines(
      v.values, plane, [](std::int64_t l) { return l; }, v.nx, plane, gaussian(deviation / v.spacing.x));

  const auto known = static_cast<std::int64_t>(kept / v.spacing.z);
  for (std::size_t i = 0; i < v.values.size(); ++i)
    v.values[i] = static_cast<std::int64_t>(i) % v.nz < known ? velocity.values[i] : 1 / v.values[i];
  return v;
}

volume salt_model(std::int64_t nx, std::int64_t ny, std::int64_t nz, const sides& spacing) {
  volume v = make_volume(nx, ny, nz, spacing);
  // Lengths are in units of the model's depth: u is across, counted from the middle, and w is down.
  constexpr double velocities[] = {1500, 1750, 2000, 2250, 2500, 2850, 3200};
  constexpr double salt = 4480;
  constexpr double pi = 3.14159265358979;
  for (std::int64_t x = 0; x < nx; ++x)
    for (std::int64_t y = 0; y < ny; ++y)
      for (std::int64_t z = 0; z < nz; ++z) {
        const double depth = static_cast<double>(nz);
        const double u = (static_cast<double>(x) - 0.5 * static_cast<double>(nx)) / depth * (spacing.x / spacing.z);
        const double w = static_cast<double>(z) / depth;
        const double across = ny > 1 ? 2 * (static_cast<double>(y) + 0.5) / static_cast<double>(ny) - 1 : 0;
        const double interfaces[] = {0.10 + 0.008 * std::cos(2 * pi * u),
                                     0.22 + 0.020 * u + 0.010 * std::sin(3 * pi * u),
                                     0.36 + 0.040 * u + 0.020 * std::cos(2.2 * pi * u),
                                     0.50 - 0.050 * u + 0.020 * std::sin(2.0 * pi * u),
                                     0.65 - 0.020 * u,
                                     0.86};
        std::size_t layer = 0;
        while (layer < 6 && w >= interfaces[layer]) ++layer;
        double value = velocities[layer];
        // The salt widens downwards: its left flank dips by 63 degrees (2 down for 1 across), its right flank by 40
        // degrees.
        const double top = 0.30 + 0.9 * u * u, base = 0.74 + 0.02 * std::cos(5 * u);
        const double left = -0.14 - (w - 0.30) / 2.0, right = 0.16 + (w - 0.30) / 0.84;
        const double narrowed = 1 - 0.6 * across * across;
        if (w >= top && w <= base && u >= left * narrowed && u <= right * narrowed) value = salt;
        v.at(x, y, z) = static_cast<float>(value);
      }
  return v;
}

volume flat_model(std::int64_t nx, std::int64_t ny, std::int64_t nz, const sides& spacing, double depth, double above,
                  double below) {
  volume v = make_volume(nx, ny, nz, spacing);
  for (std::size_t i = 0; i < v.values.size(); ++i)
    v.values[i] =
        static_cast<float>(static_cast<double>(static_cast<std::int64_t>(i) % nz) * spacing.z < depth ? above : below);
  return v;
}

}  // namespace hpe::rtm
