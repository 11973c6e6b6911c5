#pragma once

#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

/// Returns the accuracy of the model of gather and scatter on device 0: 1 - |v - v'| / v for measured v and predicted
/// v', as B. He et al. report it, at sizes, partitions and passes that were not used for the fit; and the speed of the
/// chosen method relative to the fastest one. largest: the bytes of the largest table.
[[nodiscard]] std::vector<result> accuracy_of_model(unsigned repeats, double largest);

}  // namespace hpe::bench
