#pragma once

#include <string>

#include "apps/predict/predictions.h"

namespace hpe::predict {

/// A picture of the predicted times over the number of devices, as SVG: a line for each topology and model, seconds on
/// a logarithmic axis, hollow marks for numbers of devices that the machine does not have.
[[nodiscard]] std::string as_svg(const predictions& all);

}  // namespace hpe::predict
