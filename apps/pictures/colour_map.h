#pragma once

/// Colour maps: the colours of values in charts.

#include "apps/pictures/picture.h"

namespace hpe::pictures {

/// The colour of a value from 0 to 1; other values have the colour of the nearer end.
using colour_map = colour (*)(double);

/// Dark blue over green to yellow; readable without colours too, because the brightness grows steadily.
[[nodiscard]] colour blue_to_yellow(double value);
/// White to black.
[[nodiscard]] colour white_to_black(double value);
/// Blue over white to red.
[[nodiscard]] colour blue_to_red(double value);

}  // namespace hpe::pictures
