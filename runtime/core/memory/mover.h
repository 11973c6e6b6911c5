#pragma once

#include <vector>

#include "runtime/base/counters.h"
#include "runtime/core/memory/direct_mover.h"
#include "runtime/memory/granule_table.h"
#include "runtime/node/exporter.h"
#include "runtime/work/block_copies.h"

namespace hpe::core {

/// Moves regions to other homes: between devices that reach each other directly, else through the shadow. In the second
/// case bytes that only the home has are copied there, and all written blocks are in state host then; the next device
/// work uploads them like bytes that the host wrote. Thread-safe.
class mover {
 public:
  /// oversubscribe: whether a region may have homes without room for it (work::residency).
  /// temporary: addresses for memory during a move.
  mover(const work::resources& with, const memory::uvas& space, memory::granule_table& granules, counters& count,
        backing& homes, memory::segment_allocator& temporary, node::exporter& others, bool oversubscribe)
      : with_(with),
        granules_(granules),
        count_(count),
        backing_(homes),
        direct_(with, space, homes, temporary),
        others_(others),
        oversubscribe_(oversubscribe) {}

  /// Moves a region whose mutex the caller holds, after a wait for its users. homes: one for the region, or one for
  /// each granule. Throws HPE_ERROR_OUT_OF_MEMORY, HPE_ERROR_DEVICE_LOST, and HPE_ERROR_NOT_SUPPORTED while other
  /// processes use it; the region keeps its homes then.
  void move(coherence::region& r, std::vector<std::uint16_t> homes) HPE_REQUIRES(r.mutex);

 private:
  /// Brings the bytes to the shadow, and gives the region the memory of its new homes.
  void move_through_host(coherence::region& r, const coherence::region_layout& moved) HPE_REQUIRES(r.mutex);

  const work::resources with_;
  memory::granule_table& granules_;
  counters& count_;
  backing& backing_;
  direct_mover direct_;
  node::exporter& others_;
  const bool oversubscribe_;
};

}  // namespace hpe::core
