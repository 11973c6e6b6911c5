#pragma once

/// Rolling upload: while the host writes through a region, the blocks that it has left behind are uploaded, so that
/// little is left to upload at a launch. This class decides which blocks to open ahead of a sequential writer, and
/// which of the opened ones to upload now. Pure bookkeeping; owned and locked by the region.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>

#include "runtime/coherence/read_ahead.h"

namespace hpe::coherence {

enum class rolling_mode : std::uint8_t {
  never,       ///< upload only at a release
  sequential,  ///< upload behind writers whose pattern is recognised
  always       ///< upload whatever the pattern
};

class write_behind {
 public:
  struct plan {
    block_run open;                ///< blocks to open too; begins after the block touched
    std::deque<block_run> upload;  ///< blocks to upload, which the writers have left behind
  };

  /// Resets for a region of `blocks` blocks. At most `window` of them (or twice what is opened for all writers at once,
  /// if that is more) are open for writing before the oldest are uploaded.
  void reset(std::uint64_t blocks, std::uint64_t window, rolling_mode mode);

  /// The host is about to write a closed block. uploaded_before: a plan uploaded the block since the last release, too
  /// early; after many such mistakes the rest waits for the release. opens_freely: whether another block is closed and
  /// can be opened without a copy. A plan ends at the first block for which that is false, for example one that is
  /// already open or would need a fetch.
  [[nodiscard]] plan touched(std::uint64_t block, bool uploaded_before,
                             const std::function<bool(std::uint64_t)>& opens_freely);

  /// Forgets everything: a launch took the written blocks, and earlier patterns do not predict later ones.
  void released();

 private:
  struct walk {
    std::uint64_t next = 0;
    std::uint64_t ahead = 0;  // 0: unused
    std::uint64_t used = 0;
    std::uint64_t latest = 0;  // the number of the last opening for this walk, where it writes now
  };
  struct opening {
    block_run run;
    std::uint64_t number;
  };
  static constexpr std::uint64_t slack = 4;
  static constexpr std::uint64_t least_ahead = 2;
  // The most blocks that a single walk leaves open behind it at first: a launch waits for their upload.
  static constexpr std::uint64_t most_for_one = 8;
  // A walk no longer counts as live after this many touches elsewhere.
  static constexpr std::uint64_t recent = 32;
  // The rolling upload stops when more blocks than this were uploaded too early. Some are when one of several threads
  // is delayed for a moment, and while threads that begin side by side are not told apart yet. A second pass over the
  // region causes more.
  static constexpr std::uint64_t tolerated_mistakes = 16;
  static constexpr std::uint64_t uploads_for_a_mistake = 8;

  walk* find_walk(std::uint64_t block) noexcept;
  [[nodiscard]] bool recent_one(const walk& w) const noexcept { return w.ahead != 0 && w.used + recent > clock_; }
  /// Removes the oldest opening in which no live walk writes any more; if there is none, the oldest.
  block_run take_oldest();
  /// The number of live walks, which share the window, and the number of blocks that they open at once, all together.
  struct liveness {
    std::uint64_t walks = 0;
    std::uint64_t ahead = 0;
  };
  [[nodiscard]] liveness live() const noexcept;
  /// The number of blocks to open for a walk at once. All walks together open at most half of the window, so that a
  /// walk has finished with the blocks that are uploaded. But with many walks each may still open a few, to have fewer
  /// faults. Smaller after a block was uploaded too early.
  [[nodiscard]] std::uint64_t most_ahead() const noexcept;
  [[nodiscard]] bool given_up() const noexcept;

  std::array<walk, 8> walks_{};
  std::deque<opening> open_;  // oldest first
  std::uint64_t open_blocks_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t window_ = 0;
  std::uint64_t clock_ = 0;
  std::uint64_t uploaded_ = 0;  // since the last release
  std::uint64_t mistakes_ = 0;  // since the last release
  rolling_mode mode_ = rolling_mode::never;
};

}  // namespace hpe::coherence
