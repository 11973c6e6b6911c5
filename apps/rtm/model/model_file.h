#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/rtm/model/volume.h"

namespace hpe::rtm {

/// The source of velocities that a survey file states. Zero or an empty text means: not stated.
struct velocity_source {
  std::string file;            ///< SEG-Y if it ends in .sgy or .segy, NumPy's format if in .npy, else raw float32
  std::string builtin;         ///< salt or flat
  std::vector<double> size;    ///< cells along x, y and z: of raw files and built-in models
  std::vector<double> origin;  ///< x and y of the first cell, metres
  sides spacing;               ///< 0: not stated
  std::int64_t every = 1;      ///< only every `every`-th cell along each axis is used
  std::string unit = "m/s";    ///< or km/s
  std::string picture;         ///< PNG file to write
  std::string order = "zyx";   ///< of raw and .npy files: the axes from the fastest to the slowest
  std::string density;         ///< file of densities in kg/m^3, as for the velocities, or "gardner"
};

/// Whether a file has the name of a SEG-Y file.
[[nodiscard]] bool is_segy(const std::string& path);

/// Reads or makes velocities in m/s. A SEG-Y file holds a trace for each column of cells, at equal distances, with
/// the distance of samples in millimetres. Throws bad_input.
[[nodiscard]] volume load(const velocity_source& from);

/// Returns the densities on the cells of `velocity`; null if the source states no densities: the density is then
/// constant. Throws bad_input.
[[nodiscard]] std::shared_ptr<const volume> load_density(const velocity_source& from, const volume& velocity);

/// Writes values on cells in the format of the name's ending: SEG-Y, with the text in its header, .npy, or
/// raw float32. Throws std::runtime_error if that fails.
void save(const std::string& path, const volume& v, const std::vector<std::string>& text);

}  // namespace hpe::rtm
