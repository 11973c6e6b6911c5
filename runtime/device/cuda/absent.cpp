#include "runtime/base/error.h"
#include "runtime/device/cuda/open.h"

namespace hpe::device::cuda {

std::unique_ptr<device_set> open(const std::string& specification, const uvas_layout& /*layout*/,
                                 const options& /*wanted*/) {
  static_cast<void>(parse_count(specification));
  HPE_THROW(HPE_ERROR_INITIALIZATION,
            "HPE_DEVICES=\"{}\": this build of hpe has no CUDA devices, because the CUDA toolkit was not found when it "
            "was configured; soft:N is possible",
            specification);
}

bool present() { return false; }

}  // namespace hpe::device::cuda
