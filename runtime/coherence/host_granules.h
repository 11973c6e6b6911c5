#pragma once

/// For each granule of a region, the place of the host's copy if host memory has a limit (HPE_HOST_MEMORY): in memory,
/// which means in pages of the shadow, or in the spill file. Plain data; owned by the region, guarded by its mutex, and
/// changed only by work::host_spill. A region with an empty list of granules is not subject to the limit.
///
/// Invariants, under the region's mutex:
///  - The host's copy of a block in state host or shared is in memory or in the file.
///  - The host's copy of a block in state fetching, or of a block whose copy to the host has been queued, is in memory.
///  - The granules under an open view are in memory.

#include <cstdint>
#include <vector>

#include "runtime/base/granule.h"
#include "runtime/coherence/access_order.h"

namespace hpe::coherence {

/// Where the host's copy of a granule is.
enum class granule_place : std::uint8_t {
  nowhere,  ///< no pages: no block of the granule has a copy on the host
  memory,   ///< pages of the shadow
  leaving,  ///< pages whose bytes are being written to the file; any use makes the granule `memory` again
  file,     ///< no pages; the file contains the bytes of the blocks in the states host and shared
  arriving  ///< pages into which the bytes are being read from the file
};

struct host_granule {
  static constexpr std::uint32_t no_extent = ~std::uint32_t{0};

  granule_place where = granule_place::nowhere;
  bool saved = false;                ///< the file contains the bytes of all blocks in the states host and shared
  bool changed = false;              ///< the pages may have changed since the latest write to the file began
  bool asked_for = false;            ///< a thread was asked to bring the granule into memory
  bool failed = false;               ///< the thread that was asked could not bring the granule into memory
  std::uint32_t extent = no_extent;  ///< the granule's position in the file
  std::uint64_t transfer = 0;        ///< the number of the latest read or write of the file
  std::uint64_t used = 0;            ///< time of the last use, as a number that grows with time

  [[nodiscard]] bool in_memory() const noexcept {
    return where == granule_place::memory || where == granule_place::leaving;
  }
  /// Whether the granule counts toward the limit of host memory.
  [[nodiscard]] bool counts() const noexcept { return in_memory() || where == granule_place::arriving; }
};

using host_granules = std::vector<host_granule>;

/// The granules that overlap a range.
struct granule_run {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
[[nodiscard]] inline granule_run granules_of(byte_range range) noexcept {
  return {range.begin / granule_size, range.empty() ? range.begin / granule_size : (range.end - 1) / granule_size + 1};
}

}  // namespace hpe::coherence
