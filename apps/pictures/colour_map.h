#pragma once

/// Colour maps: the colours of values in charts.

#include "apps/pictures/picture.h"

namespace hpe::pictures {

/// The colour of a value from 0 to 1; other values have the colour of the nearer end.
using colour_map = colour (*)(double);

/// Returns a colour from dark blue over green to yellow. The brightness grows steadily, so the map is readable without
/// colours too.
[[nodiscard]] colour blue_to_yellow(double value);
/// Returns a grey value from white to black.
[[nodiscard]] colour white_to_black(double value);
/// Returns a colour from blue over white to red.
[[nodiscard]] colour blue_to_red(double value);

}  // namespace hpe::pictures
