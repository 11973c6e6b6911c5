#pragma once

#include <string>

#include "apps/predict/predictions.h"

namespace hpe::predict {

/// Returns a picture of the predicted times over the number of devices, as SVG: a line for each topology and model, and
/// seconds on a logarithmic axis. Numbers of devices that exceed the machine's devices have hollow marks.
[[nodiscard]] std::string as_svg(const predictions& all);

}  // namespace hpe::predict
