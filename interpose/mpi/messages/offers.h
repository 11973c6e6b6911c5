#pragma once

/// What ranks of one machine tell each other about messages that are copied from device to device, through memory that
/// they share: an answer takes no message of MPI.
///
/// A sender makes an offer for each such message and names it in the envelope. The receiver takes it before it copies
/// and says when it is done. Of a sender that stays in MPI until then it may ask that the sender copies, which takes
/// less time, and names the place; the sender says when it is done, or leaves the copy to the receiver. A sender that
/// may not wait withdraws an offer that nobody has taken.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

/// Under progress::guard, except where told.
class offer_board {
 public:
  /// The one of this job; nullptr where the ranks of this machine share no memory. Any thread.
  [[nodiscard]] static offer_board* current() noexcept;
  /// In job::begin of every rank, before messages can go: collective over the ranks of this machine.
  static void open(const job& of, MPI_Comm machine);
  static void close() noexcept;

  struct offer {
    std::uint32_t slot = 0;
    std::uint32_t turn = 0;  ///< the slot is used again, a turn is not
  };

  /// How far it is. The receiver sets it from `taken` on, but while it asks.
  enum class stage : std::uint32_t { withdrawn, offered, taken, asked, left, done };

  /// Where a receiver wants the bytes, and how they get there from the sender's.
  struct target {
    peer_bytes place{};
    copied_rows shape{};
  };

  // ---- the sender
  /// Empty when too many messages are under way.
  [[nodiscard]] std::optional<offer> make();
  /// The sender stays in MPI until the message is over.
  void await(const offer& of) noexcept;
  [[nodiscard]] stage stage_of(const offer& of) const noexcept { return stage_of(rank_, of); }
  /// Looks for some microseconds whether the other side has done its part.
  [[nodiscard]] stage watch(const offer& of) const noexcept;
  /// Of one that is asked for.
  [[nodiscard]] target target_of(const offer& of) const noexcept { return rows_[rank_].of_offer[of.slot].wanted; }
  /// The bytes are there. Or they are not: the receiver is to fetch them.
  void pushed(const offer& of) noexcept { set(rank_, of, stage::done); }
  void leave(const offer& of) noexcept { set(rank_, of, stage::left); }
  /// Whether nobody has taken it, and nobody will.
  [[nodiscard]] bool withdraw(const offer& of) noexcept;
  /// Its slot may be used again.
  void end(const offer& of) noexcept;

  /// A rank cannot take them. Any thread.
  void set_of_no_use(int rank) noexcept { of_no_use_[rank].store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_of_no_use(int rank) const noexcept { return of_no_use_[rank].load(std::memory_order_relaxed); }

  // ---- the receiver: offers of a rank of this machine
  /// False: it was withdrawn.
  [[nodiscard]] bool take(int rank, const offer& of) noexcept;
  [[nodiscard]] bool is_awaited(int rank, const offer& of) const noexcept;
  /// Of one that is taken: the sender is to copy. Then it is done or left.
  void ask(int rank, const offer& of, const target& wanted) noexcept;
  /// `done` also when its slot is used again.
  [[nodiscard]] stage stage_of(int rank, const offer& of) const noexcept;
  [[nodiscard]] stage watch(int rank, const offer& of) const noexcept;
  void done(int rank, const offer& of) noexcept { set(rank, of, stage::done); }

  // ---- receives with less room than an envelope. Any thread.
  /// From now on this rank looks at all its receives, so that messages of any size may go by envelopes to it.
  void set_looks() noexcept;
  [[nodiscard]] bool looks(int rank) const noexcept;

 private:
  static constexpr std::uint32_t slots = 1023;
  // Cache lines of their own.
  struct alignas(64) cell {
    std::atomic<std::uint64_t> state;
    std::atomic<std::uint32_t> awaited;  // the turn of the offer that is
    target wanted;
  };
  struct row {
    alignas(64) std::atomic<bool> looks;
    cell of_offer[slots];
  };

  static std::uint64_t word(const offer& of, stage s) noexcept {
    return std::uint64_t{of.turn} << 32 | static_cast<std::uint32_t>(s);
  }
  void set(int rank, const offer& of, stage s) noexcept {
    rows_[rank].of_offer[of.slot].state.store(word(of, s), std::memory_order_release);
  }
  [[nodiscard]] bool change(int rank, const offer& of, stage from, stage to) noexcept;
  offer_board(row* rows, int rank, std::size_t ranks);

  row* const rows_;  // of each rank in MPI_COMM_WORLD
  const int rank_;
  const std::unique_ptr<std::atomic<bool>[]> of_no_use_;  // by rank
  std::vector<offer> free_;
};

}  // namespace hpe::interpose::mpi
