#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/bad_input.h"

namespace hpe::rtm {

using command_line::bad_input;

/// The sides of a cell in metres.
struct sides {
  double x = 0, y = 0, z = 0;

  constexpr sides(double cube = 0)
      : x(cube), y(cube), z(cube) {}  // NOLINT(google-explicit-constructor): most cells are cubes
  constexpr sides(double along_x, double along_y, double along_z) : x(along_x), y(along_y), z(along_z) {}

  friend bool operator==(const sides&, const sides&) = default;
  /// Returns one number for a cube, as in "12.5", else three, as in "25 x 25 x 10".
  [[nodiscard]] std::string text() const;
};

/// A property of the ground, sampled on cells. z (depth) is fastest in memory, x slowest.
struct volume {
  std::int64_t nx = 0, ny = 0, nz = 0;
  sides spacing;
  std::vector<float> values;
  double x0 = 0, y0 = 0;  ///< position of the first cell in the survey's coordinates, in metres

  [[nodiscard]] std::int64_t cells() const { return nx * ny * nz; }
  /// Returns the numbers of cells, as in "300 x 1 x 200".
  [[nodiscard]] std::string shape() const;
  [[nodiscard]] std::size_t index(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return static_cast<std::size_t>((x * ny + y) * nz + z);
  }
  [[nodiscard]] float at(std::int64_t x, std::int64_t y, std::int64_t z) const { return values[index(x, y, z)]; }
  [[nodiscard]] float& at(std::int64_t x, std::int64_t y, std::int64_t z) { return values[index(x, y, z)]; }
};

/// Returns a volume of the given size, filled with one value. Throws bad_input for an invalid size.
volume make_volume(std::int64_t nx, std::int64_t ny, std::int64_t nz, const sides& spacing, float value = 0);

/// Returns the longest side of a cell, among z and the axes along which the volume has more than one cell.
double longest_side(const volume& v);

/// Returns the largest value.
float fastest(const volume& velocity);

/// A property of the ground, and the values that it may have.
struct property {
  const char* name;  ///< name in the plural, for messages
  const char* unit;
  double least, most;
};
inline constexpr property velocities{"velocities", "m/s", 100, 20000}, densities{"densities", "kg/m3", 0.1, 1e5};

/// The layout of a raw file of 32-bit floats.
struct raw_format {
  std::int64_t nx = 0, ny = 0, nz = 0;
  sides spacing;
  double scale = 1;           ///< factor that converts the file's unit to the property's unit
  std::string order = "zyx";  ///< the axes from the fastest in the file to the slowest
  property of = velocities;
};

/// Returns a volume of values whose axes are ordered as in `format`. Throws bad_input for an invalid order of axes, and
/// for a value that the property cannot have; the message names `name` as the source of the values.
volume from_axes(const std::string& name, const raw_format& format, const std::vector<float>& values);

/// Reads a property. Throws bad_input if the file's size does not match the format, or for a value that the property
/// cannot have.
volume read_raw(const std::string& path, const raw_format& format);

/// Writes the values to a raw file, in the order of memory.
void write_raw(const std::string& path, const volume& v);

/// Returns densities in kg/m^3: 310 c^(1/4) for a velocity of c m/s (Gardner and others, Formation velocity and
/// density, Geophysics 39, 1974), and 1000 in water, that is, up to 1500 m/s.
volume gardner(const volume& velocity);

/// Repeats a section of one plane along y. Returns a volume that has this number of planes already unchanged. Throws
/// bad_input for any other volume.
volume extrude(const volume& section, std::int64_t planes);

/// Smooths velocities with a Gaussian of the given standard deviation in metres, by averaging slowness, which keeps
/// travel times. The first `kept` metres of depth do not change, because the velocity of water is known.
volume smooth(const volume& velocity, double deviation, double kept);

/// Returns the built-in velocities in m/s: folded and dipping layers, water on top, and a salt body with a steep left
/// flank and a gentler right flank. In models of several planes, the salt body ends before both ends of y. The features
/// keep their proportions at any size; the model is nx * spacing.x metres wide.
volume salt_model(std::int64_t nx, std::int64_t ny, std::int64_t nz, const sides& spacing);

/// Returns a model with one flat reflector, `depth` metres deep, between two velocities in m/s.
volume flat_model(std::int64_t nx, std::int64_t ny, std::int64_t nz, const sides& spacing, double depth, double above,
                  double below);

}  // namespace hpe::rtm
