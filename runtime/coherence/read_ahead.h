#pragma once

/// Recognises hosts that walk through a region and says how far to fetch ahead of them. Several walks at once are
/// told apart, since several threads may each read their own part. Pure bookkeeping; owned and locked by the region.
///
/// A recognised walk always has one window under way beyond the one it is in. The first block of that window
/// stays closed even when its data is there: touching it (a marker) is how the walk tells that it goes on.

#include <array>
#include <cstdint>

namespace hpe::coherence {

/// Blocks begin <= b < end; empty if they are equal.
struct block_run {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] bool empty() const noexcept { return begin >= end; }
  friend bool operator==(const block_run&, const block_run&) = default;
};

class read_ahead {
 public:
  /// Starts anew for a region of `blocks` blocks, fetching at most `window` blocks ahead (0: never ahead).
  void reset(std::uint64_t blocks, std::uint64_t window) noexcept;

  /// The host touched a closed block. Returns what to fetch besides that block, and may contain it; empty where the
  /// region ends or no walk is recognised.
  [[nodiscard]] block_run touched(std::uint64_t block) noexcept;

  /// How many blocks the walk has come that was given those up to `next` last; 0 where there is none.
  [[nodiscard]] std::uint64_t walked(std::uint64_t next) const noexcept;

  /// Whether the view of a fetched block stays closed.
  [[nodiscard]] bool is_marker(std::uint64_t block) const noexcept;

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  struct walk {
    std::uint64_t begin = 0;      // the first block
    std::uint64_t next = 0;       // the block after the last one asked for
    std::uint64_t window = 0;     // blocks of the last window; 0: this entry is unused
    std::uint64_t marker = none;  // the block whose touch asks for the next window; none: no marker
    std::uint64_t used = 0;       // for replacing the oldest
  };
  // Threads that share one walk arrive a little out of order.
  static constexpr std::uint64_t slack = 4;

  std::array<walk, 8> walks_{};
  std::uint64_t blocks_ = 0;
  std::uint64_t limit_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace hpe::coherence
