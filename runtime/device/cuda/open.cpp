#include "runtime/device/cuda/open.h"

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/device/cuda/cuda_set.h"

namespace hpe::device::cuda {

std::unique_ptr<device_set> open(const std::string& specification, const uvas_layout& layout, const options& wanted) {
  return std::make_unique<cuda_set>(driver(), parse_count(specification), layout, wanted);
}

bool present() {
  try {
    const driver cu;
    int count = 0;
    return cu.cuDeviceGetCount(&count) == CUDA_SUCCESS && count > 0;
  } catch (const error& e) {
    log(log_level::info, "{}", e.what());
    return false;
  }
}

}  // namespace hpe::device::cuda
