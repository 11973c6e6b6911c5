#include "runtime/device/cuda/open.h"

#include "runtime/base/options.h"
#include "runtime/device/device.h"
#include "runtime/device/soft/owner/soft_set.h"
#include "runtime/device/soft/shared/device_specification.h"

namespace hpe::device {

void prepare_devices(const std::string& specification) {
  if (specification.empty() || specification.starts_with("cuda")) static_cast<void>(cuda::present());
}

bool opens_gpus(const std::string& specification) {
  return specification.starts_with("cuda") || (specification.empty() && cuda::present());
}

std::unique_ptr<device_set> open_devices(const std::string& specification, const uvas_layout& layout) {
  const options wanted = options::from_environment();
  if (opens_gpus(specification)) return cuda::open(specification.empty() ? "cuda" : specification, layout, wanted);
  return soft::open(soft::parse_topology(specification), layout, wanted);
}

}  // namespace hpe::device
