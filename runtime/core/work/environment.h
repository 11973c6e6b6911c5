#pragma once

#include <vector>

#include "runtime/base/counters.h"
#include "runtime/base/options.h"
#include "runtime/coherence/announcements.h"
#include "runtime/coherence/region_table.h"
#include "runtime/fault/service.h"
#include "runtime/memory/granule_table.h"
#include "runtime/memory/uvas.h"
#include "runtime/work/submission.h"

namespace hpe::core {

/// The parts of a runtime that the parts of core work on. Owned by `runtime`, which outlives them all.
struct environment : work::resources {
  const options& option;
  counters& count;
  memory::uvas& space;
  memory::granule_table& granules;
  coherence::region_table& regions;
  fault::service& faults;
  coherence::announcements& announced;

  /// The home of an address as far as that is known without a lock: for choosing who serves it, and nothing else.
  [[nodiscard]] unsigned likely_home(const std::byte* address) const noexcept { return granules.find(address).home; }
  /// Throws HPE_ERROR_INVALID_DEVICE with the numbers that exist.
  void require_device(int device) const;
  [[nodiscard]] bool reached(const coherence::point_set& points) const;
  /// Waits in the calling thread, whatever comes of the points.
  void wait_for(const coherence::point_set& points) const;
  /// Waits for announced work that is in the way of reading or writing the range, unless the calling thread does such.
  void wait_for_announced(const coherence::region& r, coherence::byte_range range, bool write) const;
};

}  // namespace hpe::core
