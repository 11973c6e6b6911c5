#pragma once

/// The parts of a region that have device memory behind them. A region whose homes have room has all of its parts; a
/// larger one has those that device work used last. Where there is no device memory, the shadow is the valid copy: the
/// blocks there are fresh or in state host. Pure bookkeeping; owned and locked by the region.

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/interval_map.h"
#include "runtime/base/timepoint.h"
#include "runtime/coherence/access_order.h"

namespace hpe::coherence {

/// Device memory as it was mapped in one call, and as it must be unmapped.
struct mapped_range {
  byte_range range;
  std::uint16_t home = 0;
};

class resident_pieces {
 public:
  /// A copy of a piece to the shadow, made before the piece's memory is needed for something else.
  struct copy_out {
    point_set writers;              ///< of the bytes that were copied; the copy is outdated once there is another one
    std::vector<timepoint> copies;  ///< none if the shadow had all bytes
    bool outdated = false;          ///< the bytes may have changed, and the region's order does not tell
  };
  struct piece {
    std::uint16_t home = 0;
    std::uint64_t used = 0;  ///< a number that grows with time: the last use by device work
    bool leaving = false;    ///< is about to lose its memory; no further work may use it
    std::optional<copy_out> copied;
  };
  using map = interval_map<std::uint64_t, piece>;

  /// Resets for a region with `bytes` bytes, whole granules, on devices. Nothing is mapped.
  void reset(std::uint64_t bytes) noexcept;
  void add(mapped_range part, std::uint64_t used);
  void add(const std::vector<mapped_range>& parts) {
    for (const mapped_range& part : parts) add(part, 0);
  }
  /// Forgets the piece that begins at `begin`.
  void remove(std::uint64_t begin);

  /// All pieces, by their first byte.
  [[nodiscard]] const map& all() const noexcept { return pieces_; }
  [[nodiscard]] map& all() noexcept { return pieces_; }
  [[nodiscard]] std::vector<mapped_range> mapped() const;

  /// Whether device work may use the range: device memory is behind all of it, and none of it is about to go.
  [[nodiscard]] bool usable(byte_range range) const;
  /// Whether device memory is behind all of the range.
  [[nodiscard]] bool covers(byte_range range) const;
  /// Notes a use of the range by device work.
  void use(byte_range range, std::uint64_t now);

  /// Whether a copy of some of the range to the shadow was queued to make room, and may still be under way.
  [[nodiscard]] bool copied_out(byte_range range) const;

  /// Makes the copies of the range outdated.
  void outdate(byte_range range);

  /// Closes the piece that begins at `begin` to further work, or opens it again.
  void set_leaving(std::uint64_t begin, bool leaving);

 private:
  map pieces_;
  std::uint64_t bytes_ = 0;    // of the region
  std::uint64_t mapped_ = 0;   // of all pieces
  std::uint64_t leaving_ = 0;  // pieces
};

}  // namespace hpe::coherence
