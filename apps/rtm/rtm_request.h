#pragma once

#include <cstdint>
#include <string>

#include "apps/rtm/history.h"
#include "apps/rtm/model/volume.h"

namespace hpe::rtm {

/// The values of the command line. If a value is 0, -1 or an empty text by default, hpe chooses a value that suits the
/// model, except that cpml = 0 means no matched layers.
struct request {
  bool help = false;
  std::string model = "salt";
  std::string file;
  std::string size;
  double spacing = 0;
  std::string order = "zyx";
  std::string unit = "m/s";
  std::int64_t extrude = 1;
  double smooth = -1;
  double frequency = 0;
  double time = 0;
  std::int64_t space_order = 8;
  double time_step = 0;
  std::string shots;
  double shot_depth = -1;
  std::string receivers;
  double receiver_depth = -1;
  std::string data = "mute";
  std::int64_t sponge = -1, cpml = 0;
  bool free_surface = false;
  std::int64_t keep_every = 0;
  keeping keep;
  std::int64_t devices = 0;
  std::string output = "rtm", json;
  bool raw_image = false;
  double gain = 0.5;
  std::int64_t width = 1240;
  bool quiet = false;
};

/// Reads the options. Throws bad_input for an unknown option, an invalid value, or more than one file.
request parse(int argc, char** argv);

/// Returns the text of --help.
std::string help_text();

/// Returns the numbers in a text such as "600x1x300" or "0:6000:20". Throws bad_input unless the text has `least` to
/// `most` numbers; the message calls them `what`.
std::vector<double> numbers(const std::string& text, char separator, std::size_t least, std::size_t most,
                            const std::string& what);

}  // namespace hpe::rtm
