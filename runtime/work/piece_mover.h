#pragma once

/// Moves pieces of regions between device memory and zero-copy memory. The addresses of the bytes, the states of their
/// blocks and the host's copy stay the same, because zero-copy memory is memory of the home.

#include "runtime/base/counters.h"
#include "runtime/work/block_copies.h"
#include "runtime/work/sharing.h"

namespace hpe::work {

/// Thread-safe. Only the thread that has the turn on a device (residency::turn) moves pieces of the device.
class piece_mover {
 public:
  piece_mover(const resources& with, sharing& others, counters& count) : with_(with), sharing_(others), count_(count) {}

  /// Moves a piece from zero-copy memory to device memory; see move(). Returns false if too little device memory is
  /// free. Throws HPE_ERROR_OUT_OF_MEMORY if the piece cannot move.
  bool bring_in(coherence::region& r, coherence::byte_range piece, unsigned home);

  /// Waits for the users of a piece and moves the piece. Returns the size of the piece; 0 if there is no such piece, if
  /// it is there already, or if it cannot move: it is in use outside of this process, or larger than new pieces. Throws
  /// HPE_ERROR_OUT_OF_MEMORY if too little memory is free; the piece is then unchanged. The caller must not hold the
  /// region's mutex.
  std::uint64_t move(coherence::region& r, std::uint64_t begin, unsigned home, device::backing_kind to);

  /// Whether zero-copy memory of this size for a device leaves enough of the host's memory free. If it does not, the
  /// device first returns memory that it keeps.
  [[nodiscard]] bool host_has_room(unsigned home, std::uint64_t bytes) const;
  /// How many bytes of the host's memory zero-copy memory leaves free.
  static constexpr std::uint64_t least_free_on_host = std::uint64_t{512} << 20;

  /// Whether the region, which may have ended since the piece was found, still has the piece.
  [[nodiscard]] static bool has_piece(const coherence::region& r, std::uint64_t begin, unsigned home)
      HPE_REQUIRES(r.mutex);

 private:
  [[nodiscard]] bool may_move(const coherence::region& r, std::uint64_t begin, unsigned home,
                              device::backing_kind to) const HPE_REQUIRES(r.mutex);
  /// Moves a piece that no queued work uses. Its bytes do not change while the region's mutex is held.
  void change_memory(coherence::region& r, coherence::byte_range piece, unsigned home, device::backing_kind to)
      HPE_REQUIRES(r.mutex);

  const resources with_;
  sharing& sharing_;
  counters& count_;
};

}  // namespace hpe::work
