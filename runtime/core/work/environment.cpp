#include "runtime/core/work/environment.h"

#include "runtime/base/error.h"

namespace hpe::core {

void environment::require_device(int device) const {
  HPE_REQUIRE(device >= 0 && static_cast<unsigned>(device) < devices.size(), HPE_ERROR_INVALID_DEVICE,
              "there is no device {}; devices are numbered from 0 to {}", device, devices.size() - 1);
}

bool environment::reached(const coherence::point_set& points) const { return work::reached(points.points(), devices); }

void environment::wait_for(const coherence::point_set& points) const { work::wait_for(points.points(), devices); }

void environment::wait_for_announced(const coherence::region& r, coherence::byte_range range, bool write) const {
  if (!announced.any() || coherence::this_announced_thread().at_work) return;
  while (true) {
    coherence::announcement_number latest = 0;
    {
      const lock_guard lock(r.mutex);
      if (r.alive && range.end <= r.layout.extent) latest = announced.in_the_way(r, range, write);
    }
    if (latest == 0) return;
    announced.wait_for(latest);
  }
}

}  // namespace hpe::core
