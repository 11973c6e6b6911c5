#include "runtime/core/environment.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace hpe::core {

void environment::require_device(int device) const {
  HPE_REQUIRE(device >= 0 && static_cast<unsigned>(device) < devices.size(), HPE_ERROR_INVALID_DEVICE,
              "there is no device {}; devices are numbered from 0 to {}", device, devices.size() - 1);
}

bool environment::reached(const coherence::point_set& points) const {
  const auto all = points.points();
  return std::all_of(all.begin(), all.end(), [&](timepoint p) { return devices.reached(p); });
}

void environment::wait_for(const coherence::point_set& points) const {
  for (const timepoint p : points.points()) devices.wait(p, std::chrono::steady_clock::time_point::max());
}

}  // namespace hpe::core
