// The C interface: where devices are.

#include "hpe/placement.h"
#include "runtime/core/api_guard.h"
#include "runtime/core/runtime.h"

hpeStatus hpeGetDeviceNumaNode(int device, int* node) {
  return hpe::core::guarded([&] {
    HPE_REQUIRE(node != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeGetDeviceNumaNode was given no place for the answer");
    const auto& env = hpe::core::runtime::instance().env();
    env.require_device(device);
    *node = env.devices.at(static_cast<unsigned>(device)).info().numa_node;
  });
}
