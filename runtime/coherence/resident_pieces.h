#pragma once

/// The parts of a region that have device memory. If the homes' memory suffices, all parts have device memory;
/// otherwise, only the parts that device work has used most recently. In all other parts, the shadow is the valid copy,
/// and the blocks are in state fresh or host. Pure bookkeeping; owned by the region and guarded by its mutex.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/interval_map.h"
#include "runtime/base/timepoint.h"
#include "runtime/coherence/access_order.h"
#include "runtime/coherence/work_anywhere.h"

namespace hpe::coherence {

/// A range of device memory that was mapped in one call, and that can only be unmapped as a whole.
struct mapped_range {
  byte_range range;
  std::uint16_t home = 0;
  bool zero_copy = false;  ///< the memory is host memory (device::backing_kind::zero_copy)
};

/// A copy of a piece to the shadow that was made before the piece's memory is needed for other data.
struct copy_out {
  point_set writers;              ///< last writers of the copied bytes; a later write makes the copy outdated
  std::vector<timepoint> copies;  ///< empty if the shadow already had all bytes
  bool outdated = false;          ///< the copy must not be used, even if no later writer is recorded
};

/// A fingerprint of a piece's bytes (work::fingerprints).
struct piece_fingerprint {
  point_set writers;                    ///< last writers of the bytes; a later write makes the fingerprint outdated
  timepoint computed;                   ///< the value is known when this point is reached
  std::shared_ptr<const void> value{};  ///< the value, in host memory
};

/// A *piece*: a part of a region that has device memory, and that gets and loses this memory as a whole.
struct resident_piece {
  std::uint16_t home = 0;
  std::uint64_t used = 0;  ///< time of the last use by device work, as a number that grows with time
  bool leaving = false;    ///< the piece is about to lose its memory; no further work may use it
  bool zero_copy = false;  ///< see mapped_range
  std::optional<copy_out> copied;
  std::optional<piece_fingerprint> on_host;  ///< of the bytes that the shadow has
  std::optional<piece_fingerprint> latest;   ///< of the bytes that the home has or had; only with on_host
  /// Of the bytes in the zero-copy memory that the device keeps for the piece's next move (device::has_standby).
  std::optional<piece_fingerprint> on_standby;
};

class resident_pieces {
 public:
  using map = interval_map<std::uint64_t, resident_piece>;

  /// `all`: learns that pieces leave the device; may be null.
  explicit resident_pieces(work_anywhere* all = nullptr) noexcept : anywhere_(all) {}

  /// Resets for a region with `bytes` bytes of device memory, whole granules. Nothing is mapped at first.
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

  /// Whether device work may use the range: all of it has device memory, and no part is being evicted.
  [[nodiscard]] bool usable(byte_range range) const;
  /// Returns the whole region if all of it is usable and nothing is in zero-copy memory; otherwise the bytes of all
  /// pieces that overlap the range. The range must be usable.
  [[nodiscard]] byte_range around(byte_range range) const;
  /// Whether a part of the range is in zero-copy memory.
  [[nodiscard]] bool has_zero_copy(byte_range range) const;
  /// Whether all of the range has device memory.
  [[nodiscard]] bool covers(byte_range range) const;
  /// Records a use of the range by device work.
  void use(byte_range range, std::uint64_t now);

  /// Whether an eviction has queued a copy of a part of the range to the shadow. The copy may still be running.
  [[nodiscard]] bool copied_out(byte_range range) const;

  /// Records the fingerprint of a piece's bytes in the shadow, until forget_fingerprints() is called.
  void set_fingerprint(std::uint64_t begin, piece_fingerprint of);
  /// Call this when the bytes of the range in the shadow may have changed.
  void forget_fingerprints(byte_range range) noexcept;

  /// Marks the copies of pieces in the range as outdated, and forgets their fingerprints.
  void outdate(byte_range range);

  /// Records that the piece that begins at `begin` has moved to zero-copy memory, or back.
  void set_zero_copy(std::uint64_t begin, bool zero_copy);

  /// Closes the piece that begins at `begin` to further work, or opens it again.
  void set_leaving(std::uint64_t begin, bool leaving);

 private:
  void unsettle() noexcept {
    if (anywhere_ != nullptr) anywhere_->unsettle();
  }

  work_anywhere* anywhere_;
  map pieces_;
  std::uint64_t bytes_ = 0;         // the size of the region
  std::uint64_t mapped_ = 0;        // the size of all pieces together
  std::uint64_t leaving_ = 0;       // the number of pieces that are leaving
  std::uint64_t fingerprints_ = 0;  // the number of pieces with fingerprints
  std::uint64_t zero_copies_ = 0;   // the number of pieces in zero-copy memory
};

}  // namespace hpe::coherence
