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

  /// Sets the protection of some blocks' views. Returns false if the operating system allows no further mapping. Then
  /// the views' protection is undefined, and the caller must make the region one block. The caller holds the region's
  /// mutex.
  [[nodiscard]] bool set(const coherence::region& r, coherence::block_run run, os::page_protection allowed);

  /// Splits the mapping of the blocks from the neighbouring mappings, while the data of the blocks is being copied. A
  /// later call of set() then takes half the time. Returns the bytes for rejoin(), which may be called at any time
  /// afterwards, without the mutex.
  [[nodiscard]] std::span<std::byte> set_apart(const coherence::region& r, coherence::block_run run) noexcept;
  /// Lets the operating system merge mappings again. Without this call, every block that was set apart remains a
  /// separate mapping.
  static void rejoin(std::span<std::byte> apart) noexcept;

  /// Makes the region one block, with the protection of the state that all its blocks must have. Protecting a whole
  /// region needs no further mapping.
  void degrade(coherence::region& r) HPE_REQUIRES(r.mutex);

 private:
  counters& count_;
};

/// The protection of the view of a block in this state.
[[nodiscard]] os::page_protection access_for(coherence::block_state state) noexcept;

}  // namespace hpe::work
