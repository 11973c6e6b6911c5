#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/rtm/volume.h"

namespace hpe::rtm {

/// Pixels, eight bits each of red, green and blue, rows from the top.
struct picture {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
};

/// The middle plane of a model and its image, one above the other: the velocities in colours (dark is slow), the image
/// in grey, and the image again with marks where the velocity jumps. Ticks at the edges stand every 500 m, longer ones
/// every kilometre. In the picture, the image is amplified by depth^gain and clipped at the 98th percentile. `width` is
/// the widest the picture may be in pixels.
picture draw(const volume& velocity, const volume& image, double gain, std::int64_t width);

/// Writes a PNG file. Throws bad_input if it cannot be written.
void write_png(const std::string& path, const picture& p);

}  // namespace hpe::rtm
