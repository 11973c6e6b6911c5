#pragma once

#include <cstdint>

#include "apps/pictures/picture.h"
#include "apps/rtm/volume.h"

namespace hpe::rtm {

/// The middle plane of a model and its image, one above the other: the velocities in colours (dark is slow), the image
/// in grey, and the image again with marks where the velocity jumps. The axes count kilometres. In the picture, the
/// image is amplified by depth^gain and clipped at the 98th percentile. `width` is the widest the picture may be in
/// pixels.
pictures::picture draw(const volume& velocity, const volume& image, double gain, std::int64_t width);

}  // namespace hpe::rtm
