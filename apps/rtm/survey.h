#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/rtm/grid.h"
#include "apps/rtm/history.h"
#include "apps/rtm/model/model_file.h"
#include "apps/rtm/model/volume.h"
#include "apps/rtm/records.h"

namespace hpe::rtm {

/// The values that a survey file states, in metres, seconds, hertz and metres a second. The values 0 and -1, an empty
/// text and an empty list stand for fields that the file omits.
struct survey {
  velocity_source model;      ///< velocities in which records are modelled
  velocity_source migration;  ///< velocities in which records are migrated; if omitted, `model`, smoothed
  double smooth = -1;         ///< standard deviation of the Gaussian, metres
  std::string data = "mute";
  double angle = 90;  ///< largest angle of incidence that the mute keeps, degrees
  std::int64_t keep_every = 0;
  keeping keep;

  std::string wavelet_file;
  double wavelet_interval = 0;
  double frequency = 0;

  std::vector<double> shots_x, shots_y;  ///< first, last and step
  double shot_depth = -1;
  std::vector<double> receivers_x, receivers_y;  ///< first, last and step
  std::vector<double> offsets;                   ///< first, last and step, relative to the shot
  double receiver_depth = -1;
  std::string geometry;  ///< a file of records whose places are used

  std::int64_t order = usual_order;  ///< order of the derivatives in space
  double length = 0, interval = 0, time_step = 0;
  std::int64_t sponge = -1, cpml = 0;
  bool free_surface = false;

  std::string records, records_format = "ieee", records_picture;
  double shift = 0;

  std::string image;
  std::vector<std::string> image_formats{"sgy", "png"};
  std::string condition = "normalised";
  std::string illumination;  ///< file to which the illumination is written
  bool laplacian = true;
  double gain = 0.5;
  std::int64_t width = 1240;
};

/// Reads a survey file in TOML; paths in it are relative to its folder. Throws bad_input with the file, the line and
/// the field for a text that is not TOML, an unknown field, and a value of another kind or out of range.
[[nodiscard]] survey read_survey(const std::string& path);

/// Returns the text of --help about the fields of a survey file: a paragraph for each table.
[[nodiscard]] std::string help_on_surveys();

/// Returns the shots of a survey, in cells of the model; cells may be outside the model. Throws bad_input if the survey
/// states no shots, or invalid ranges of places.
[[nodiscard]] std::vector<placed_shot> shots_of(const survey& s, const volume& model);

}  // namespace hpe::rtm
