#pragma once

/// Rolling upload: while the host writes through a region, the blocks it left behind are uploaded, so that a launch
/// finds little left to do. Decides which blocks to open for writing ahead of a sequential writer, and which of those
/// opened before to upload now. Pure bookkeeping; owned and locked by the region.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>

#include "runtime/coherence/read_ahead.h"

namespace hpe::coherence {

enum class rolling_mode : std::uint8_t {
  never,       ///< upload at release only
  sequential,  ///< behind writers whose pattern is recognised
  always       ///< whatever the pattern
};

class write_behind {
 public:
  struct plan {
    block_run open;                ///< open these too; begins after the block touched
    std::deque<block_run> upload;  ///< the writer is `window` past these
  };

  /// Starts anew: at most `window` blocks (and for each writer what is opened for it twice) are open for writing before
  /// the oldest are uploaded.
  void reset(std::uint64_t blocks, std::uint64_t window, rolling_mode mode);

  /// The host is about to write a closed block. uploaded_before: it was uploaded by a plan since the last release, so
  /// the guess was wrong; when too many are, the rest waits for the release. opens_freely: whether another closed block
  /// can be opened without a copy; plans go up to the first that cannot, because it is closed to nobody, or its bytes
  /// have to be fetched.
  [[nodiscard]] plan touched(std::uint64_t block, bool uploaded_before,
                             const std::function<bool(std::uint64_t)>& opens_freely);

  /// A launch took the written blocks; patterns before it say nothing about what comes.
  void released();

 private:
  struct walk {
    std::uint64_t next = 0;
    std::uint64_t ahead = 0;  // 0: unused
    std::uint64_t used = 0;
    std::uint64_t latest = 0;  // number of what was opened for it last, in which it is
  };
  struct opening {
    block_run run;
    std::uint64_t number;
  };
  static constexpr std::uint64_t slack = 4;
  static constexpr std::uint64_t least_ahead = 2;
  // A single walk leaves no more behind, because its last blocks are uploaded while a launch waits.
  static constexpr std::uint64_t most_for_one = 8;
  // One that was not used for so many touches is no longer counted as live.
  static constexpr std::uint64_t recent = 32;
  // A thread among several that is held up for a moment finds some of its blocks uploaded too early, and so do several
  // that begin together side by side, until they are told apart; that is no reason to stop. A second pass over the
  // region is.
  static constexpr std::uint64_t tolerated_mistakes = 16;
  static constexpr std::uint64_t uploads_for_a_mistake = 8;

  walk* find_walk(std::uint64_t block) noexcept;
  [[nodiscard]] bool recent_one(const walk& w) const noexcept { return w.ahead != 0 && w.used + recent > clock_; }
  /// Takes out what was opened first and is left behind: not the latest of a walk, unless there is nothing else.
  block_run take_oldest();
  /// Between how many walks the window is shared, and how many blocks they open at once, all together.
  struct liveness {
    std::uint64_t walks = 0;
    std::uint64_t ahead = 0;
  };
  [[nodiscard]] liveness live() const noexcept;
  /// What is opened for a walk at once. All together open half of the window at most, so that a walk is through with
  /// what is uploaded; but none is held up at every block because there are others. Less once something was uploaded
  /// too early.
  [[nodiscard]] std::uint64_t most_ahead() const noexcept;
  [[nodiscard]] bool given_up() const noexcept;

  std::array<walk, 8> walks_{};
  std::deque<opening> open_;  // in the order of opening
  std::uint64_t open_blocks_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t window_ = 0;
  std::uint64_t clock_ = 0;
  std::uint64_t uploaded_ = 0;  // since the last release
  std::uint64_t mistakes_ = 0;  // likewise
  rolling_mode mode_ = rolling_mode::never;
};

}  // namespace hpe::coherence
