#pragma once

/// Recognises walks (a walk is a host thread that reads consecutive blocks of a region) and decides how many blocks to
/// fetch ahead of each. Distinguishes several walks, because several threads may each read a part of the region. Pure
/// bookkeeping; owned by the region and guarded by its mutex.
///
/// While a recognised walk reads one window, the next window is being fetched. The first block of the next window, the
/// marker, stays closed even when its data has arrived: a touch of the marker shows that the walk continues.

#include <array>
#include <cstdint>

namespace hpe::coherence {

/// The blocks b with `begin` <= b < `end`; empty if `begin` >= `end`.
struct block_run {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] bool empty() const noexcept { return begin >= end; }
  friend bool operator==(const block_run&, const block_run&) = default;
};

class read_ahead {
 public:
  /// Resets for a region of `blocks` blocks. At most `window` blocks are fetched ahead (0: none).
  void reset(std::uint64_t blocks, std::uint64_t window) noexcept;

  /// Call this when the host touches a closed block. Returns the blocks that the caller must fetch ahead. The caller
  /// fetches the touched block in any case; the result may include it. The result is empty at the end of the region, or
  /// if no walk is recognised. `alone`: neither neighbour of the block is on the host.
  [[nodiscard]] block_run touched(std::uint64_t block, bool alone = false) noexcept;

  /// Whether the host's reads are scattered: the host has touched far more lone blocks than blocks that continue a walk
  /// or have a neighbour on the host.
  [[nodiscard]] bool scattered() const noexcept { return lone_touches_ >= many_lone_touches; }

  /// The length in blocks of the walk whose last window ended at `next`; 0 if no walk's window ended there.
  [[nodiscard]] std::uint64_t walked(std::uint64_t next) const noexcept;

  /// Whether the view of the block stays closed after its fetch, because it is a marker.
  [[nodiscard]] bool is_marker(std::uint64_t block) const noexcept;

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  struct walk {
    std::uint64_t begin = 0;      // the first block
    std::uint64_t next = 0;       // the block after the last requested one
    std::uint64_t window = 0;     // the number of blocks in the last window; 0: this entry is unused
    std::uint64_t marker = none;  // a touch of this block requests the next window; none: no marker
    std::uint64_t used = 0;       // the time of the last touch; the oldest walk is replaced
  };
  // A touch of one of this many blocks from `next` on continues the walk, because threads that share a walk touch
  // blocks slightly out of order.
  static constexpr std::uint64_t slack = 4;
  // This limit exceeds the number of threads that usually begin walks of their own at the same time.
  static constexpr std::uint64_t many_lone_touches = 32;

  std::array<walk, 8> walks_{};
  std::uint64_t lone_touches_ = 0;  // lone touches minus other touches; at least 0
  std::uint64_t blocks_ = 0;
  std::uint64_t limit_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace hpe::coherence
