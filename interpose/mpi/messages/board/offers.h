#pragma once

/// Agreement between ranks of one machine about messages that are copied from device to device. It goes through shared
/// memory, so that an answer takes no message of MPI.
///
/// A sender makes an offer for each message of this kind and names the offer in the envelope. The receiver takes the
/// offer before it copies, and marks it done afterwards. The receiver may ask the sender to copy, which is faster, and
/// names the target; the sender then marks the offer done, or leaves the copy to the receiver. If the sender does not
/// begin, the receiver takes the offer back and copies itself. A sender that may not wait withdraws an offer that the
/// receiver has not taken. A sender may also copy without being asked, to a receive that was announced to it
/// (announcements.h).
///
/// The processors of both ranks pass the cell of an offer to and fro, which takes as long as a step of the protocol. So
/// the sender writes nothing into the cell of an offer that it will not withdraw, and the receiver need not take it.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

/// Call its functions under progress::guard unless they say otherwise.
class offer_board {
 public:
  /// The board of this job; nullptr in all ranks of this machine if one of them cannot map the shared memory. Thread
  /// safe.
  [[nodiscard]] static offer_board* current() noexcept;
  /// job::begin calls it in every rank, before the first message: collective over the ranks of this machine.
  static void open(const job& of, MPI_Comm machine);
  static void close() noexcept;

  struct offer {
    std::uint32_t slot = 0;
    std::uint32_t turn = 0;  ///< counts the uses of the slot: slot and turn together name one offer
    bool kept = false;       ///< the sender does not withdraw it

    [[nodiscard]] bool is_same(const offer& other) const noexcept { return slot == other.slot && turn == other.turn; }
  };

  /// The state of an offer. The receiver sets `taken`, `asked`, `matched` and `done`: the message that it has `matched`
  /// is the one that the sender copies without being asked. The sender sets `offered` and `withdrawn`, and when it is
  /// asked to copy, `pushing`, and then `left` or `done`.
  enum class stage : std::uint32_t { withdrawn, offered, taken, asked, matched, pushing, left, done };

  /// Where a receiver wants the bytes, and the shape of the copy.
  struct target {
    peer_bytes place{};
    copied_rows shape{};
  };

  // ---- the sender
  /// Returns nothing if all slots are in use. withdraw() is for offers that are not kept.
  [[nodiscard]] std::optional<offer> make(bool kept);
  /// Tells the receiver that the sender stays in MPI until the message is over.
  void await(const offer& of) noexcept;
  [[nodiscard]] stage stage_of(const offer& of) const noexcept;
  /// As stage_of(), after spinning for some microseconds while the receiver has its next step still to do, and
  /// is_news() returns false.
  template <class News>
  [[nodiscard]] stage watch(const offer& of, News&& is_news) const noexcept {
    constexpr int while_offered = 50;
    constexpr int while_taken = 100;
    const auto look = [&] { return stage_of(of); };
    const stage at = watch_while(
        look, [&](stage s) { return s == stage::offered && !is_news(); }, while_offered);
    return at == stage::taken ? watch_while(
                                    look, [](stage s) { return s == stage::taken; }, while_taken)
                              : at;
  }
  /// Begins the copy that the receiver has asked for. Returns false, with no effect, if the receiver has taken the
  /// offer back.
  [[nodiscard]] bool begin_push(const offer& of) noexcept;
  /// The target that the receiver named; only in stage `pushing`.
  [[nodiscard]] target target_of(const offer& of) const noexcept { return rows_[rank_].of_offer[of.slot].wanted; }
  /// Answers in stage `pushing`: pushed() says that all bytes are copied, leave() that the receiver must fetch them.
  void pushed(const offer& of) noexcept { set(rank_, of, stage::done); }
  void leave(const offer& of) noexcept { set(rank_, of, stage::left); }
  /// Returns false, with no effect, if the receiver has taken the offer.
  [[nodiscard]] bool withdraw(const offer& of) noexcept;
  /// Frees the slot of the offer.
  void end(const offer& of) noexcept;

  // ---- copies without being asked: the sender says when one is over, both ask
  void copied(const offer& of) noexcept {
    rows_[rank_].of_offer[of.slot].copied.store(of.turn, std::memory_order_release);
  }
  /// The copy has failed: the receiver has to fetch the bytes.
  void fail(const offer& of) noexcept;
  /// Whether the copy is over. watch_copy() spins for some microseconds.
  [[nodiscard]] bool is_copied(int rank, const offer& of) const noexcept;
  [[nodiscard]] bool watch_copy(int rank, const offer& of) const noexcept;
  [[nodiscard]] bool has_failed(int rank, const offer& of) const noexcept {
    return rows_[rank].of_offer[of.slot].failed.load(std::memory_order_acquire) == of.turn;
  }

  /// Records that this rank sends from a device. Returns a rank of this machine that has done the same before; at the
  /// second call and later, nothing. Thread safe.
  using device_id = std::array<std::byte, 16>;
  [[nodiscard]] std::optional<int> sends_from(const device_id& device) noexcept;

  /// Records that a rank cannot take offers. Thread safe.
  void set_of_no_use(int rank) noexcept { of_no_use_[rank].store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_of_no_use(int rank) const noexcept { return of_no_use_[rank].load(std::memory_order_relaxed); }

  // ---- the receiver: offers of a rank of this machine
  /// Returns false if the sender has withdrawn the offer.
  [[nodiscard]] bool take(int rank, const offer& of) noexcept;
  /// Tells the sender of a kept offer that it is taken. The sender of any other offer knows that from take().
  void show_taken(int rank, const offer& of) noexcept {
    if (of.kept) set(rank, of, stage::taken);
  }
  [[nodiscard]] bool is_awaited(int rank, const offer& of) const noexcept;
  /// Asks the sender of a taken offer to copy. The sender then sets `pushing`, and then `done` or `left`.
  void ask(int rank, const offer& of, const target& wanted) noexcept;
  /// Asks no longer: the receiver copies. Returns false, with no effect, if the sender has begun.
  [[nodiscard]] bool take_back(int rank, const offer& of) noexcept;
  /// Returns `done` also if the slot belongs to a later offer. watch() spins while the sender has a step to do.
  [[nodiscard]] stage stage_of(int rank, const offer& of) const noexcept;
  [[nodiscard]] stage watch(int rank, const offer& of) const noexcept;
  void done(int rank, const offer& of) noexcept { set(rank, of, stage::done); }
  /// The receiver has matched the message of an offer that the sender copies without being asked.
  void matched(int rank, const offer& of) noexcept { set(rank, of, stage::matched); }

  // ---- receives with less room than an envelope. Thread safe.
  /// Tells other ranks that this rank inspects all its receives, so that they may send it any message by envelope.
  void set_looks() noexcept;
  [[nodiscard]] bool looks(int rank) const noexcept;

 private:
  static constexpr std::uint32_t slots = 1023;
  // Each cell has its own cache lines.
  struct alignas(64) cell {
    std::atomic<std::uint64_t> state;
    std::atomic<std::uint32_t> awaited;  // turn of the offer that the sender waits for in MPI
    std::atomic<std::uint32_t> copied;   // turn of the last offer whose bytes the sender has copied without being asked
    std::atomic<std::uint32_t> failed;   // turn of the last offer for which that failed
    target wanted;
  };
  struct row {
    alignas(64) std::atomic<bool> looks;
    std::atomic<bool> sends;
    device_id device;  // set if `sends`
    cell of_offer[slots];
  };

  static std::uint64_t word(const offer& of, stage s) noexcept {
    return std::uint64_t{of.turn} << 32 | static_cast<std::uint32_t>(s);
  }
  void set(int rank, const offer& of, stage s) noexcept {
    rows_[rank].of_offer[of.slot].state.store(word(of, s), std::memory_order_release);
  }
  [[nodiscard]] bool change(int rank, const offer& of, stage from, stage to) noexcept;
  template <class Look, class Holds>
  static auto watch_while(Look look, Holds holds, int looks) {
    auto at = look();
    for (int i = 0; i < looks && holds(at); ++i, at = look()) __builtin_ia32_pause();
    return at;
  }
  offer_board(row* rows, int rank, std::size_t ranks);

  row* const rows_;  // one for each rank of MPI_COMM_WORLD
  const int rank_;
  const std::unique_ptr<std::atomic<bool>[]> of_no_use_;  // by rank
  std::vector<offer> free_;
  std::atomic<bool> sends_{false};  // sends_from() has been called
};

}  // namespace hpe::interpose::mpi
