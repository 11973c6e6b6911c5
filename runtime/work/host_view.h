#pragma once

/// The program's access to the bytes of regions: only this class changes the page protection of a live region.

#include <cstddef>
#include <span>

#include "runtime/base/counters.h"
#include "runtime/coherence/region.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::work {

class host_view {
 public:
  explicit host_view(counters& count) : count_(count) {}

  /// Sets the protection of some blocks' views. Returns false if the kernel has no room for another mapping: these
  /// views are undefined then, and the caller makes the region one block. The caller holds the region's mutex.
  [[nodiscard]] bool set(const coherence::region& r, coherence::block_run run, os::access allowed);

  /// Prepares set() for one call while the data of the blocks is on its way: mappings are split now, which takes as
  /// long as the rest of set(). Returns the bytes for rejoin(), which may be called at any time afterwards, without the
  /// mutex.
  [[nodiscard]] std::span<std::byte> set_apart(const coherence::region& r, coherence::block_run run) noexcept;
  /// Lets mappings be merged again. Without it every block that was set apart remains a mapping of its own.
  static void rejoin(std::span<std::byte> apart) noexcept;

  /// Makes the region, whose blocks must all be in one state, one block with the protection of that state. Protecting a
  /// whole region needs no further mapping.
  void degrade(coherence::region& r) HPE_REQUIRES(r.mutex);

 private:
  counters& count_;
};

/// The protection of a view in this state.
[[nodiscard]] os::access access_for(coherence::block_state state) noexcept;

}  // namespace hpe::work
