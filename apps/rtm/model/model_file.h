#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/rtm/model/volume.h"

namespace hpe::rtm {

/// The source of velocities that a survey file states. A value of zero and an empty text mean that the survey file
/// omits the field.
struct velocity_source {
  std::string file;            ///< SEG-Y if it ends in .sgy or .segy, NumPy's format if in .npy, else raw float32
  std::string builtin;         ///< salt or flat
  std::vector<double> size;    ///< number of cells along x, y and z, for raw files and built-in models
  std::vector<double> origin;  ///< x and y of the first cell, metres
  sides spacing;               ///< sides of a cell; 0: not stated
  std::int64_t every = 1;      ///< only every `every`-th cell along each axis is used
  std::string unit = "m/s";    ///< unit of the file's velocities: m/s or km/s
  std::string picture;         ///< PNG file to write
  std::string order = "zyx";   ///< axes of raw and .npy files, from the fastest to the slowest
  std::string density;         ///< file of densities in kg/m^3, in the same format as the velocities, or "gardner"
};

/// Whether a file has the name of a SEG-Y file.
[[nodiscard]] bool is_segy(const std::string& path);

/// Reads velocities, or makes those of a built-in model, in m/s. A SEG-Y file holds a trace for each column of cells,
/// at equal distances, and states the distance of samples in millimetres. Throws bad_input for an invalid file or
/// source.
[[nodiscard]] volume load(const velocity_source& from);

/// Returns the densities on the cells of `velocity`; null (constant density) if the source states no densities. Throws
/// bad_input for an invalid file.
[[nodiscard]] std::shared_ptr<const volume> load_density(const velocity_source& from, const volume& velocity);

/// Writes values on cells in the format of the name's ending: SEG-Y, with the text in its header, .npy, or
/// raw float32. Throws std::runtime_error if that fails.
void save(const std::string& path, const volume& v, const std::vector<std::string>& text);

}  // namespace hpe::rtm
