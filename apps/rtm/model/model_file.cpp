#include "apps/rtm/model/model_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/command_line/program.h"
#include "apps/files/element_file.h"
#include "apps/files/segy.h"

namespace hpe::rtm {

namespace {

namespace segy = files::segy;

constexpr double feet = 0.3048, millimetres = 1000;

/// Returns the distinct values in ascending order; values that differ by less than a millimetre count as equal.
std::vector<double> distinct(std::vector<double> values) {
  constexpr double one = 1e-3;
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end(), [](double a, double b) { return b - a < one; }), values.end());
  return values;
}

/// Returns the distance between equally spaced places; 0 for a single place. Throws bad_input if distances differ.
double step_of(const std::vector<double>& places, const std::string& path, char axis) {
  if (places.size() < 2) return 0;
  const double step = (places.back() - places.front()) / static_cast<double>(places.size() - 1);
  for (std::size_t i = 0; i < places.size(); ++i)
    if (std::abs(places[i] - places.front() - static_cast<double>(i) * step) > 0.01 * step)
      throw bad_input(
          fmt::format("{}: the columns of a model must be at equal distances along {}; after {} m comes {} m", path,
                      axis, places[i == 0 ? 0 : i - 1], places[i]));
  return step;
}

/// Returns the index in `places` of the place that is nearest to `value`.
std::int64_t number_of(double value, const std::vector<double>& places, double step) {
  return step > 0 ? std::lround((value - places.front()) / step) : 0;
}

/// Returns the factor that converts the file's unit to the property's unit.
double scale_of(const velocity_source& from, const property& of) {
  return of.unit == std::string("m/s") && from.unit == "km/s" ? 1000.0 : 1.0;
}

volume read_segy(const velocity_source& from, const property& of) {
  const segy::reader file(from.file);
  const double metre = file.head().get(segy::in_file::unit) == 2 ? feet : 1;
  std::vector<double> xs, ys;
  for (std::uint64_t n = 0; n < file.traces(); ++n) {
    const segy::header h = file.read_header(n);
    xs.push_back(metre * h.get_scaled(segy::in_trace::x, segy::in_trace::scalar));
    ys.push_back(metre * h.get_scaled(segy::in_trace::y, segy::in_trace::scalar));
  }
  std::vector<double> across = distinct(xs), along = distinct(ys);
  sides spacing = from.spacing;
  const bool placed = across.size() > 1 || along.size() > 1 || file.traces() == 1;
  if (!placed) {  // traces without coordinates are consecutive columns along x
    if (spacing.x <= 0)
      throw bad_input(from.file +
                      ": its traces have no coordinates (bytes 181 to 188), so the survey must state the spacing");
    for (std::size_t n = 0; n < xs.size(); ++n) xs[n] = static_cast<double>(n) * spacing.x;
    across = xs;
  }
  const double x_step = step_of(across, from.file, 'x'), y_step = step_of(along, from.file, 'y');
  const double z_step = metre * file.shape().interval / millimetres;
  if (z_step <= 0 && spacing.z <= 0)
    throw bad_input(from.file +
                    " states no sample interval (millimetres in bytes 3217 and 3218, or in 117 and 118 of its first "
                    "trace), so the survey must state the spacing");
  // If the model has a single column along an axis, the file does not show the cell's side along this axis. This side
  // is then set to the side along another axis.
  const double any = x_step > 0 ? x_step : y_step > 0 ? y_step : z_step;
  const std::pair<double, double*> found[] = {{x_step, &spacing.x}, {y_step, &spacing.y}, {z_step, &spacing.z}};
  for (const auto& [step, side] : found) {
    if (*side <= 0) *side = step > 0 ? step : any;
    if (step > 0 && std::abs(step - *side) > 0.001 * *side)
      throw bad_input(
          fmt::format("{}: its cells are {} m across, {} m along y and {} m down, but the stated spacing is {} m",
                      from.file, x_step, y_step, z_step, from.spacing.text()));
  }
  const auto nx = static_cast<std::int64_t>(across.size()), ny = static_cast<std::int64_t>(along.size()),
             nz = static_cast<std::int64_t>(file.shape().samples);
  if (static_cast<std::uint64_t>(nx) * static_cast<std::uint64_t>(ny) != file.traces())
    throw bad_input(fmt::format("{}: {} traces at {} places along x and {} along y do not form a full rectangle",
                                from.file, file.traces(), nx, ny));
  std::vector<float> values(static_cast<std::size_t>(nx * ny * nz));
  std::vector<bool> filled(static_cast<std::size_t>(nx * ny));
  for (std::uint64_t n = 0; n < file.traces(); ++n) {
    const auto column =
        static_cast<std::size_t>(number_of(xs[n], across, x_step) * ny + number_of(ys[n], along, y_step));
    if (filled.at(column))
      throw bad_input(fmt::format("{}: trace {} has the same position as another trace", from.file, n + 1));
    filled[column] = true;
    const segy::trace t = file.read(n);
    std::transform(t.samples.begin(), t.samples.end(), values.begin() + static_cast<std::ptrdiff_t>(column) * nz,
                   [](double v) { return static_cast<float>(v); });
  }
  volume v = from_axes(from.file, {nx, ny, nz, spacing, scale_of(from, of), "zyx", of}, values);
  v.x0 = across.front();
  v.y0 = along.front();
  return v;
}

volume read_npy(const velocity_source& from, const property& of) {
  const files::description file = files::describe(from.file);
  file.must_hold("f32");
  if (file.shape.size() != 2 && file.shape.size() != 3)
    throw bad_input(fmt::format("{} has {} axes; a section has 2 and a volume 3", from.file, file.shape.size()));
  std::vector<float> values(file.elements(sizeof(float)));
  files::read(file, values.data());
  std::string order = from.order;
  if (file.shape.size() == 2) std::erase(order, 'y');
  raw_format format{1, 1, 1, from.spacing, scale_of(from, of), from.order, of};
  for (std::size_t i = 0; i < order.size() && i < file.shape.size(); ++i) {
    const auto n = static_cast<std::int64_t>(file.shape[file.shape.size() - 1 - i]);
    (order[i] == 'x' ? format.nx : order[i] == 'y' ? format.ny : format.nz) = n;
  }
  return from_axes(from.file, format, values);
}

void save_segy(const std::string& path, const volume& v, const std::vector<std::string>& text) {
  const segy::header head =
      segy::make_header(segy::sample_format::f32, static_cast<std::uint64_t>(v.nz), v.spacing.z * millimetres, text);
  segy::writer file(path, head);
  const double furthest = std::max(std::abs(v.x0), std::abs(v.y0)) +
                          std::max(static_cast<double>(v.nx) * v.spacing.x, static_cast<double>(v.ny) * v.spacing.y);
  segy::trace t = segy::make_trace(head);
  t.head.set(segy::in_trace::scalar, segy::scalar_for(furthest));
  for (std::int64_t x = 0; x < v.nx; ++x)
    for (std::int64_t y = 0; y < v.ny; ++y) {
      const std::int64_t number = x * v.ny + y + 1;
      t.head.set(segy::in_trace::number, number);
      t.head.set(segy::in_trace::ensemble, number);
      t.head.set_scaled(segy::in_trace::x, segy::in_trace::scalar, v.x0 + static_cast<double>(x) * v.spacing.x);
      t.head.set_scaled(segy::in_trace::y, segy::in_trace::scalar, v.y0 + static_cast<double>(y) * v.spacing.y);
      const float* const column = &v.values[v.index(x, y, 0)];
      std::copy(column, column + v.nz, t.samples.begin());
      file.write(std::span(&t, 1));
    }
  file.close();
}

}  // namespace

bool is_segy(const std::string& path) { return path.ends_with(".sgy") || path.ends_with(".segy"); }

namespace {

volume load_all(const velocity_source& from, const property& of) {
  if (from.file.empty() == from.builtin.empty())
    throw bad_input("a model needs a file or the name of a built-in model, but not both");
  if (!from.file.empty() && is_segy(from.file)) return read_segy(from, of);
  if (!(from.spacing.x > 0)) throw bad_input("the spacing must be stated for a model that is not a SEG-Y file");
  volume v;
  if (files::is_npy(from.file)) {
    v = read_npy(from, of);
  } else {
    if (from.size.size() != 3) throw bad_input("a raw or built-in model needs its size: cells along x, y and z");
    std::int64_t n[3];
    for (std::size_t i = 0; i < 3; ++i) {
      if (from.size[i] != std::rint(from.size[i]))
        throw bad_input(fmt::format("a size of {} cells is not a whole number", from.size[i]));
      n[i] = std::llround(std::min(from.size[i], 1e9));
    }
    // Host memory must hold this number of arrays of the model's size: the model, a smooth model, the image, and
    // temporary copies.
    constexpr double copies = 6;
    if (from.file.empty())
      command_line::check_room(fmt::format("models of {} x {} x {} cells", n[0], n[1], n[2]),
                               {.on_host = copies * sizeof(float) * from.size[0] * from.size[1] * from.size[2]}, 0);
    if (!from.file.empty())
      v = read_raw(from.file, {n[0], n[1], n[2], from.spacing, scale_of(from, of), from.order, of});
    else if (from.builtin == "salt")
      v = salt_model(n[0], n[1], n[2], from.spacing);
    else
      v = flat_model(n[0], n[1], n[2], from.spacing, 0.5 * static_cast<double>(n[2]) * from.spacing.z, 2000, 2600);
  }
  if (!from.origin.empty()) {
    v.x0 = from.origin.at(0);
    v.y0 = from.origin.at(1);
  }
  return v;
}

volume thinned(const volume& v, std::int64_t every) {
  const auto left = [&](std::int64_t cells) { return (cells + every - 1) / every; };
  const auto wide = static_cast<double>(every);
  volume thin =
      make_volume(left(v.nx), left(v.ny), left(v.nz), {v.spacing.x * wide, v.spacing.y * wide, v.spacing.z * wide});
  thin.x0 = v.x0;
  thin.y0 = v.y0;
  for (std::int64_t x = 0; x < thin.nx; ++x)
    for (std::int64_t y = 0; y < thin.ny; ++y)
      for (std::int64_t z = 0; z < thin.nz; ++z) thin.at(x, y, z) = v.at(x * every, y * every, z * every);
  return thin;
}

volume load_property(const velocity_source& from, const property& of) {
  volume v = load_all(from, of);
  if (const std::int64_t longest = std::max({v.nx, v.ny, v.nz}); from.every > longest)
    throw bad_input(
        fmt::format("every = {}: the model has {} cells; every may be at most {}, the number along the longest axis",
                    from.every, v.shape(), longest));
  return from.every > 1 ? thinned(v, from.every) : v;
}

}  // namespace

volume load(const velocity_source& from) { return load_property(from, velocities); }

std::shared_ptr<const volume> load_density(const velocity_source& from, const volume& velocity) {
  if (from.density.empty()) return nullptr;
  if (from.density == "gardner") return std::make_shared<volume>(gardner(velocity));
  velocity_source file = from;
  file.file = from.density;
  file.builtin.clear();
  return std::make_shared<volume>(load_property(file, densities));
}

void save(const std::string& path, const volume& v, const std::vector<std::string>& text) {
  if (is_segy(path)) return save_segy(path, v, text);
  files::write(path, "f32",
               {static_cast<std::uint64_t>(v.nx), static_cast<std::uint64_t>(v.ny), static_cast<std::uint64_t>(v.nz)},
               v.values.data(), sizeof(float));
}

}  // namespace hpe::rtm
