#include "bench/workloads/program.h"

#include <hpe/hpe.hpp>

namespace hpe::bench {

bool on_gpus() {
  static const bool result = device_info(0).kind == HPE_DEVICE_CUDA;
  return result;
}

}  // namespace hpe::bench
