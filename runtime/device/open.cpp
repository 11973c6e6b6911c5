#include "runtime/base/error.h"
#include "runtime/base/options.h"
#include "runtime/device/device.h"
#include "runtime/device/soft/soft_set.h"
#include "runtime/device/soft/specification.h"

namespace hpe::device {

std::unique_ptr<device_set> open_devices(const std::string& specification, const uvas_layout& layout) {
  HPE_REQUIRE(!specification.starts_with("cuda"), HPE_ERROR_INITIALIZATION,
              "the devices \"{}\" were asked for; this build of hpe has no CUDA devices: use soft:N", specification);
  return soft::open(soft::parse_topology(specification), layout, options::from_environment());
}

}  // namespace hpe::device
