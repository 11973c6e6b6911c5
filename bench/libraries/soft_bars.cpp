#include "bench/libraries/soft_bars.h"

#include "hpe/hpe.hpp"

namespace hpe::bench {

unsigned threads_of_devices() {
  unsigned threads = 0;
  for (int d = 0; d < device_count(); ++d) threads += device_info(d).compute_units;
  return threads;
}

}  // namespace hpe::bench
