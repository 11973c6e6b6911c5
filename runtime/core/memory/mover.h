#pragma once

#include <vector>

#include "runtime/base/counters.h"
#include "runtime/core/memory/direct_mover.h"
#include "runtime/memory/granule_table.h"
#include "runtime/work/block_copies.h"
#include "runtime/work/sharing.h"

namespace hpe::core {

/// Moves regions to other homes: directly if direct_mover can move the region, otherwise through the shadow. A move
/// through the shadow first copies to the shadow the bytes whose only valid copy is at the home. All written blocks are
/// then in state host, and the next device work uploads them like bytes that the host has written. Thread-safe.
class mover {
 public:
  /// oversubscribe: whether a region may be larger than the free memory of its homes (work::residency). temporary: the
  /// addresses for the temporary memory of moves.
  mover(const work::resources& with, const memory::uvas& space, memory::granule_table& granules, counters& count,
        backing& homes, memory::segment_allocator& temporary, work::sharing& others, bool oversubscribe)
      : with_(with),
        granules_(granules),
        count_(count),
        backing_(homes),
        direct_(with, space, homes, temporary),
        others_(others),
        oversubscribe_(oversubscribe) {}

  /// Waits for all work that uses a region, and moves the region; the caller holds the region's mutex. homes: one home
  /// for the whole region, or one for each granule. Throws HPE_ERROR_OUT_OF_MEMORY, HPE_ERROR_DEVICE_LOST, and
  /// HPE_ERROR_NOT_SUPPORTED while other processes use the region. If move throws, the region keeps its homes.
  void move(coherence::region& r, std::vector<std::uint16_t> homes) HPE_REQUIRES(r.mutex);

 private:
  /// Copies the bytes to the shadow and backs the region with memory of its new homes.
  void move_through_host(coherence::region& r, const coherence::region_layout& moved) HPE_REQUIRES(r.mutex);

  const work::resources with_;
  memory::granule_table& granules_;
  counters& count_;
  backing& backing_;
  direct_mover direct_;
  work::sharing& others_;
  const bool oversubscribe_;
};

}  // namespace hpe::core
