#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/pictures/picture.h"
#include "apps/rtm/model/volume.h"

namespace hpe::rtm {

/// Draws the middle plane of a model and its image, one above the other: the velocities in colours (dark is slow), the
/// image in grey, and the image again with marks where the velocity jumps. The axes count metres. In the picture, the
/// image is amplified by depth^gain and clipped at the 98th percentile. `width` is the width of the picture in pixels.
pictures::picture draw(const volume& velocity, const volume& image, double gain, std::int64_t width);

/// Draws the middle plane of velocities, with a colour bar in m/s.
pictures::picture draw_velocities(const volume& velocity, const std::string& title, std::int64_t width);

/// Draws the middle plane of an image, amplified by depth^gain and clipped at the 98th percentile.
pictures::picture draw_image(const volume& image, const std::string& title, double gain, std::int64_t width);

/// Draws the records of a shot, [sample][receiver], with samples `interval` seconds apart, clipped at the 98th
/// percentile.
pictures::picture draw_gather(const std::vector<float>& data, std::int64_t samples, double interval,
                              const std::string& title, std::int64_t width);

}  // namespace hpe::rtm
