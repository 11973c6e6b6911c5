#pragma once

#include <vector>

#include "runtime/core/memory/backing.h"
#include "runtime/memory/segment_allocator.h"
#include "runtime/work/block_copies.h"

namespace hpe::core {

/// Moves bytes of regions between devices that reach each other, without the host. Two devices cannot back one address
/// at the same time, so the bytes wait in temporary memory of their old home while the addresses get new memory. The
/// old home has them until the new one does, so a new home that is lost loses nothing. Thread-safe.
class direct_mover {
 public:
  /// addresses: for temporary memory.
  direct_mover(const work::resources& with, const memory::uvas& space, backing& homes,
               memory::segment_allocator& addresses)
      : with_(with), space_(space), backing_(homes), addresses_(addresses) {}

  /// Whether such moves are faster than moves through the host, which cross the host's link twice.
  [[nodiscard]] static bool pays(const device::properties& device) {
    return device.peer_rate == 0 || (device.host_rate != 0 && 2 * device.peer_rate >= device.host_rate);
  }

  /// Gives the region the device memory of the layout `moved`, which differs from r.layout only in the homes, with the
  /// bytes that the old homes had. The caller changes the region's homes. States of blocks and views do not change.
  ///
  /// Returns false if this region must move through the host: devices do not reach each other or have slow links,
  /// memory for the temporary copy is short, or a thread is fetching blocks. Then either nothing has changed, or some
  /// bytes have no device memory and are the host's. Throws if bytes are lost with their old home.
  [[nodiscard]] bool move(coherence::region& r, const coherence::region_layout& moved) HPE_REQUIRES(r.mutex);

 private:
  /// Bytes with one old and one new home.
  struct piece {
    coherence::byte_range range;
    std::uint16_t from = 0, to = 0;
    std::byte* temporary = nullptr;
  };
  class temporary_memory;

  /// The pieces of all mapped ranges that hold bytes with another new home, and these ranges.
  [[nodiscard]] static std::vector<piece> pieces_of(const coherence::region& r, const coherence::region_layout& moved,
                                                    backing::parts& leaving) HPE_REQUIRES(r.mutex);
  [[nodiscard]] static coherence::block_run blocks_of(const coherence::region& r, const piece& p);
  /// Whether all pieces can move directly, and faster than through the host.
  [[nodiscard]] bool suits(const std::vector<piece>& pieces) const;
  enum class direction : std::uint8_t { to_temporary, from_temporary };
  /// Copies the pieces and waits. Throws the error of a copy that failed, after the end of all.
  void copy(const coherence::region& r, const std::vector<piece>& pieces, direction way) const;
  /// Copies the bytes of the pieces that only temporary memory has to the shadow. Their written blocks are in state
  /// host then.
  void bring_to_host(coherence::region& r, const std::vector<piece>& pieces) const HPE_REQUIRES(r.mutex);

  const work::resources with_;
  const memory::uvas& space_;
  backing& backing_;
  memory::segment_allocator& addresses_;
};

}  // namespace hpe::core
