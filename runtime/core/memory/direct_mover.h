#pragma once

#include <vector>

#include "runtime/core/memory/backing.h"
#include "runtime/memory/segment_allocator.h"
#include "runtime/work/block_copies.h"

namespace hpe::core {

/// Moves the bytes of regions directly between devices that reach each other, without a copy in host memory. Two
/// devices cannot back one address at the same time. Therefore the bytes stay in temporary memory on the old home while
/// memory of the new home is mapped at the addresses. The temporary memory is freed only after the bytes have arrived
/// at the new home, so no data is lost if the new home is lost. Thread-safe.
class direct_mover {
 public:
  /// addresses: the segment for temporary memory.
  direct_mover(const work::resources& with, const memory::uvas& space, backing& homes,
               memory::segment_allocator& addresses)
      : with_(with), space_(space), backing_(homes), addresses_(addresses) {}

  /// Whether a direct move from this device is faster than a move through host memory, in which the bytes cross the
  /// link between host and device twice.
  [[nodiscard]] static bool pays(const device::properties& device) {
    return device.peer_rate == 0 || (device.host_rate != 0 && 2 * device.peer_rate >= device.host_rate);
  }

  /// Backs the region with device memory of the homes in the layout `moved`, which differs from r.layout only in the
  /// homes, and copies the bytes from the old homes to the new homes. The caller then changes the region's homes. The
  /// states of blocks and the views do not change.
  ///
  /// Returns false if the region must move through host memory, for example because devices do not reach each other or
  /// have slow links, because there is too little memory for the temporary copy, because a lane is fetching blocks, or
  /// because a copy has failed. If move returns false, either nothing has changed, or some bytes have no device memory
  /// and the host's copy of them is valid. Throws if the only valid copy of some bytes was lost with their old home.
  [[nodiscard]] bool move(coherence::region& r, const coherence::region_layout& moved) HPE_REQUIRES(r.mutex);

 private:
  /// A range of bytes with one old and one new home.
  struct moved_range {
    coherence::byte_range range;
    std::uint16_t from = 0, to = 0;
    std::byte* temporary = nullptr;
  };
  class temporary_memory;

  /// Cuts every mapped range in which the home of some bytes changes into ranges with one new home each. Appends these
  /// mapped ranges to `leaving`.
  [[nodiscard]] static std::vector<moved_range> ranges_to_move(const coherence::region& r,
                                                               const coherence::region_layout& moved,
                                                               backing::parts& leaving) HPE_REQUIRES(r.mutex);
  [[nodiscard]] static coherence::block_run blocks_of(const coherence::region& r, const moved_range& each);
  /// Whether every range can move directly, and faster than through host memory.
  [[nodiscard]] bool suits(const std::vector<moved_range>& ranges) const;
  enum class direction : std::uint8_t { to_temporary, from_temporary };
  /// Copies all ranges and waits for the copies. If a copy fails, waits for the other copies too and throws the error.
  void copy(const coherence::region& r, const std::vector<moved_range>& ranges, direction way) const;
  /// Copies to the shadow the bytes whose only valid copy is in temporary memory. The blocks that were in state device
  /// are in state host afterwards.
  void bring_to_host(coherence::region& r, const std::vector<moved_range>& ranges) const HPE_REQUIRES(r.mutex);

  const work::resources with_;
  const memory::uvas& space_;
  backing& backing_;
  memory::segment_allocator& addresses_;
};

}  // namespace hpe::core
