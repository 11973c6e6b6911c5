#pragma once

#include "runtime/coherence/region.h"
#include "runtime/transfer/engine.h"

namespace hpe::fault {

/// Whoever reads the shadow of fresh blocks, or opens their view, calls this first: where the shadow has pages of an
/// allocation that is gone, they become zero. Under the region's mutex.
inline void clear_stale_shadow(transfer::engine& engine, coherence::region& r, coherence::block_run run) {
  for (std::uint64_t b = run.begin; b < run.end; ++b) {
    if (!r.blocks[b].stale) continue;
    r.blocks[b].stale = false;
    if (r.blocks[b].state != coherence::block_state::fresh) continue;
    const coherence::byte_range bytes = r.bytes_of({b, b + 1});
    engine.clear_shadow(r.is.base + bytes.begin, bytes.size());
  }
}

}  // namespace hpe::fault
