#pragma once

/// Rolling upload: while a host thread writes one block of a region after another, hpe uploads the blocks that the
/// thread has finished, so that few blocks are left to upload at a launch. This class decides which blocks to open
/// ahead of a sequential writer, and which open blocks to upload now. Pure bookkeeping; owned by the region and guarded
/// by its mutex.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>

#include "runtime/coherence/read_ahead.h"

namespace hpe::coherence {

enum class rolling_mode : std::uint8_t {
  never,       ///< upload only at a release
  sequential,  ///< upload the blocks that writers with a recognised pattern have finished
  always       ///< upload the blocks that any writers have finished
};

class write_behind {
 public:
  struct plan {
    block_run open;                ///< further blocks to open; begins after the touched block
    std::deque<block_run> upload;  ///< blocks to upload, with which the writers have finished
  };

  /// Resets for a region of `blocks` blocks. When too many blocks are open for writing, the oldest of them are
  /// uploaded. The limit is `window` blocks or, if that is more, twice the number of blocks that are opened for all
  /// writers at once. While there is only one writer, most_for_one may lower the limit.
  void reset(std::uint64_t blocks, std::uint64_t window, rolling_mode mode);

  /// Call this when the host is about to write a closed block. `uploaded_before`: a plan has uploaded the block since
  /// the last release, which was too early; after many of these mistakes, all other blocks are uploaded at the release.
  /// `opens_freely`: whether another block is closed and can be opened without a copy. A plan ends before the first
  /// block for which this is false, for example a block that is already open or would need a fetch.
  [[nodiscard]] plan touched(std::uint64_t block, bool uploaded_before,
                             const std::function<bool(std::uint64_t)>& opens_freely);

  /// Forgets everything, because a launch uses the written blocks, and earlier patterns do not predict later ones.
  void released();

 private:
  struct walk {
    std::uint64_t next = 0;
    std::uint64_t ahead = 0;  // the number of blocks opened at once for this walk; 0: this entry is unused
    std::uint64_t used = 0;
    std::uint64_t latest = 0;  // the number of the walk's last opening, in which the walk writes now
  };
  struct opening {
    block_run run;
    std::uint64_t number;
  };
  static constexpr std::uint64_t slack = 4;
  static constexpr std::uint64_t least_ahead = 2;
  // The initial limit on the blocks that a single walk leaves open after it has written them. The limit is small,
  // because a launch waits for the upload of these blocks.
  static constexpr std::uint64_t most_for_one = 8;
  // A walk no longer counts as live after this many touches outside the walk.
  static constexpr std::uint64_t recent = 32;
  // The rolling upload stops when the number of blocks that were uploaded too early exceeds tolerated_mistakes plus one
  // for every uploads_for_a_mistake uploads. A block is uploaded too early when one of several threads is delayed for a
  // moment, and while threads that begin at adjacent addresses still look like one writer. A second pass over the
  // region uploads more blocks too early.
  static constexpr std::uint64_t tolerated_mistakes = 16;
  static constexpr std::uint64_t uploads_for_a_mistake = 8;

  walk* find_walk(std::uint64_t block) noexcept;
  [[nodiscard]] bool recent_one(const walk& w) const noexcept { return w.ahead != 0 && w.used + recent > clock_; }
  /// Removes and returns the oldest opening in which no live walk still writes. If live walks write in all openings,
  /// removes and returns the oldest opening.
  block_run take_oldest();
  /// The number of live walks, which share the window, and the number of blocks that all of them together open at once.
  struct liveness {
    std::uint64_t walks = 0;
    std::uint64_t ahead = 0;
  };
  [[nodiscard]] liveness live() const noexcept;
  /// The largest number of blocks to open for a walk at once. All walks together open at most half of the window, so
  /// that a walk has finished with the blocks that are uploaded. But even if there are many walks, each walk may open a
  /// few blocks, to reduce the number of faults. The number is smaller after a block was uploaded too early.
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
