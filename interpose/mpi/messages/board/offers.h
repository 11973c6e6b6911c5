#pragma once

/// Lets ranks of one machine agree on messages that are copied from device to device. The protocol uses shared memory,
/// so that an answer needs no MPI message.
///
/// A sender makes an offer for each of these messages and names the offer in the envelope. The receiver takes the offer
/// before it copies, and sets the offer to `done` after the copy. The receiver may also describe the target and ask the
/// sender to copy, which is faster. The sender then copies and sets the offer to `done`, or leaves the copy to the
/// receiver. If the sender does not begin the copy, the receiver withdraws its request and copies. A sender that must
/// not wait withdraws an offer that the receiver has not taken. A sender may also copy without being asked, to a
/// receive that was announced to it (announcements.h).
///
/// The caches of both ranks' processors exchange the cache line of an offer's cell, which takes as long as a step of
/// the protocol. To save these transfers, the sender does not write to the cell of an offer that it will not withdraw,
/// and the receiver does not have to take the offer.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

/// The functions must be called while a progress::guard exists, unless their description says otherwise.
class offer_board {
 public:
  /// The board of this job; nullptr in all ranks of this machine if one of them cannot map the shared memory. Thread
  /// safe.
  [[nodiscard]] static offer_board* current() noexcept;
  /// Called by job::begin in every rank, before the first message; collective over the ranks of this machine.
  static void open(const job& of, MPI_Comm machine);
  static void close() noexcept;

  struct offer {
    std::uint32_t slot = 0;
    std::uint32_t turn = 0;  ///< counts the uses of the slot; slot and turn together identify an offer
    bool kept = false;       ///< whether the sender will not withdraw the offer

    [[nodiscard]] bool is_same(const offer& other) const noexcept { return slot == other.slot && turn == other.turn; }
  };

  /// The state of an offer. The receiver sets `taken`, `asked`, `matched` and `done`. `matched` means that the receiver
  /// has matched a message that the sender copies without being asked. The sender sets `offered` and `withdrawn`. If
  /// the receiver has asked the sender to copy, the sender sets `pushing`, and then `left` or `done`.
  enum class stage : std::uint32_t { withdrawn, offered, taken, asked, matched, pushing, left, done };

  /// Where a receiver wants the bytes to be copied, and the shape of the copy.
  struct target {
    peer_bytes place{};
    box_copy shape{};
  };

  // ---- the sender

  /// Makes an offer. Returns nullopt if all slots are in use. withdraw() may be called only for offers that are not
  /// kept.
  [[nodiscard]] std::optional<offer> make(bool kept);
  /// Tells the receiver that the sender's thread stays in MPI until the message has completed.
  void await(const offer& of) noexcept;
  [[nodiscard]] stage stage_of(const offer& of) const noexcept;
  /// Like stage_of(), but first spins for some microseconds, as long as the receiver has not made its next step and
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
  /// Begins the copy for which the receiver has asked. Returns false, without effect, if the receiver has withdrawn its
  /// request.
  [[nodiscard]] bool begin_push(const offer& of) noexcept;
  /// The target that the receiver has described; valid only in stage `pushing`.
  [[nodiscard]] target target_of(const offer& of) const noexcept { return rows_[rank_].of_offer[of.slot].wanted; }
  /// The sender's answers in stage `pushing`: pushed() reports that all bytes have been copied, leave() that the
  /// receiver must copy them.
  void pushed(const offer& of) noexcept { set(rank_, of, stage::done); }
  void leave(const offer& of) noexcept { set(rank_, of, stage::left); }
  /// Returns false, without effect, if the receiver has taken the offer.
  [[nodiscard]] bool withdraw(const offer& of) noexcept;
  /// Frees the slot of the offer.
  void end(const offer& of) noexcept;

  // ---- copies without a request: copied() and fail() report that the copy has ended, and both ranks can query this

  void copied(const offer& of) noexcept {
    rows_[rank_].of_offer[of.slot].copied.store(of.turn, std::memory_order_release);
  }
  /// Reports that the copy has failed, so that the receiver must fetch the bytes.
  void fail(const offer& of) noexcept;
  /// Whether the copy has ended. watch_copy() first spins for some microseconds.
  [[nodiscard]] bool is_copied(int rank, const offer& of) const noexcept;
  [[nodiscard]] bool watch_copy(int rank, const offer& of) const noexcept;
  [[nodiscard]] bool has_failed(int rank, const offer& of) const noexcept {
    return rows_[rank].of_offer[of.slot].failed.load(std::memory_order_acquire) == of.turn;
  }

  /// Records that this rank sends from a device. Returns another rank of this machine that has recorded the same
  /// device; from the second call on, returns nullopt. Thread safe.
  using device_id = std::array<std::byte, 16>;
  [[nodiscard]] std::optional<int> sends_from(const device_id& device) noexcept;

  /// Records that `rank`, on this machine, cannot use the offers that the calling rank makes. Thread safe.
  void set_of_no_use(int rank) noexcept { of_no_use_[rank].store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_of_no_use(int rank) const noexcept { return of_no_use_[rank].load(std::memory_order_relaxed); }

  // ---- the receiver: offers of a rank of this machine

  /// Takes an offer. Returns false if the sender has withdrawn it.
  [[nodiscard]] bool take(int rank, const offer& of) noexcept;
  /// Tells the sender of a kept offer that the receiver has taken it. For any other offer, take() has told the sender
  /// already.
  void show_taken(int rank, const offer& of) noexcept {
    if (of.kept) set(rank, of, stage::taken);
  }
  [[nodiscard]] bool is_awaited(int rank, const offer& of) const noexcept;
  /// Asks the sender of a taken offer to copy to the target `wanted`. The sender then sets `pushing`, and afterwards
  /// `done` or `left`.
  void ask(int rank, const offer& of, const target& wanted) noexcept;
  /// Withdraws the request to the sender, so that the receiver can copy. Returns false, without effect, if the sender
  /// has begun the copy.
  [[nodiscard]] bool take_back(int rank, const offer& of) noexcept;
  /// stage_of() also returns `done` if the slot already belongs to a later offer. watch() first spins while the sender
  /// has a step to make.
  [[nodiscard]] stage stage_of(int rank, const offer& of) const noexcept;
  [[nodiscard]] stage watch(int rank, const offer& of) const noexcept;
  void done(int rank, const offer& of) noexcept { set(rank, of, stage::done); }
  /// Tells the sender that the receiver has matched the offer's message, which the sender copies without being asked.
  void matched(int rank, const offer& of) noexcept { set(rank, of, stage::matched); }

  // ---- receives whose buffers are smaller than an envelope. Thread safe.

  /// Tells other ranks that this rank inspects all its receives, so that other ranks may send it any message by
  /// envelope.
  void set_looks() noexcept;
  [[nodiscard]] bool looks(int rank) const noexcept;

 private:
  static constexpr std::uint32_t slots = 1023;
  // Each cell has its own cache lines.
  struct alignas(64) cell {
    std::atomic<std::uint64_t> state;
    std::atomic<std::uint32_t> awaited;  // turn of the offer for which the sender waits in MPI
    std::atomic<std::uint32_t> copied;   // turn of the last offer for which a copy without a request has ended
    std::atomic<std::uint32_t> failed;   // turn of the last offer whose copy without a request has failed
    target wanted;
  };
  struct row {
    alignas(64) std::atomic<bool> looks;
    std::atomic<bool> sends;
    device_id device;  // valid if `sends` is true
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
  std::atomic<bool> sends_{false};  // whether sends_from() has been called
};

}  // namespace hpe::interpose::mpi
