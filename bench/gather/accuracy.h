#pragma once

#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

/// Measures how accurately the model predicts gather and scatter on device 0, at sizes, partitions and passes that were
/// not used to fit the model. The accuracy is 1 - |v - v'| / v for the measured time v and the predicted time v', as B.
/// He et al. report it. Also measures the speed of the method that the model chooses, relative to the fastest method.
/// largest: the size of the largest table in bytes. Returns the lines for report().
[[nodiscard]] std::vector<result> accuracy_of_model(unsigned repeats, double largest);

}  // namespace hpe::bench
