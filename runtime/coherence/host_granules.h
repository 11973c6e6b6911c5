#pragma once

/// Where the host's copy of a region is, granule by granule, if host memory has a limit (HPE_HOST_MEMORY): in memory,
/// which means in pages of the shadow, or in a file. Plain data; owned and locked by the region, changed by
/// work::host_memory only. A region without granules here is not subject to the limit.
///
/// Invariants, under the region's mutex:
///  - The host's copy of a block in state host or shared is in memory or in the file.
///  - A block in state fetching, and a block whose copy to the host has been queued, is in memory.
///  - An open view lies over memory.

#include <cstdint>
#include <vector>

#include "runtime/base/granule.h"
#include "runtime/coherence/access_order.h"

namespace hpe::coherence {

struct host_granule {
  enum class place : std::uint8_t {
    nowhere,  ///< no pages: no block of it has a copy on the host
    memory,   ///< pages of the shadow
    leaving,  ///< pages whose bytes are being written to the file; any use of them makes it `memory` again
    file,     ///< no pages; the file has the bytes of the blocks in state host and shared
    arriving  ///< being read from the file into pages
  };
  static constexpr std::uint32_t no_extent = ~std::uint32_t{0};

  place where = place::nowhere;
  bool saved = false;                ///< the file has the bytes of all blocks in state host and shared
  bool changed = false;              ///< the pages may have been written since the latest write to the file began
  bool asked_for = false;            ///< a thread was asked to bring it to memory
  bool failed = false;               ///< the thread that was asked could not bring it
  std::uint32_t extent = no_extent;  ///< its place in the file
  std::uint64_t transfer = 0;        ///< the number of the latest read or write of the file
  std::uint64_t used = 0;            ///< a number that grows with time: the latest use

  [[nodiscard]] bool in_memory() const noexcept { return where == place::memory || where == place::leaving; }
  /// Whether it counts as host memory.
  [[nodiscard]] bool counts() const noexcept { return in_memory() || where == place::arriving; }
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
