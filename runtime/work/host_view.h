#pragma once

/// What the program may do with the bytes of a region: the only place where the runtime changes page protection.

#include "runtime/base/counters.h"
#include "runtime/coherence/region.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::work {

class host_view {
 public:
  explicit host_view(counters& count) : count_(count) {}

  /// Sets the protection of some blocks' views. False when the kernel has no room for another mapping: nothing may be
  /// assumed of these blocks' views then, and the caller falls back to the region as a whole. Under the region's mutex.
  [[nodiscard]] bool set(const coherence::region& r, coherence::block_run run, os::access allowed);

  /// Makes the region, whose blocks are all in one state, one block with the view that belongs to the state: a change
  /// of protection of the whole region needs no further mapping.
  void degrade(coherence::region& r) HPE_REQUIRES(r.mutex);

 private:
  counters& count_;
};

/// The protection that belongs to a state.
[[nodiscard]] os::access access_for(coherence::block_state state) noexcept;

}  // namespace hpe::work
