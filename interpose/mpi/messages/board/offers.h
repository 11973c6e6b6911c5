#pragma once

/// With offers in shared memory, two ranks of one machine agree which of them copies a message from device to device,
/// and when. An answer to an offer needs no MPI message.
///
/// A sender makes an offer for each message that can be copied directly, and sends the number of the offer in the
/// envelope (envelope.h). The receiver takes the offer, copies the message, and then sets the offer to `done`. Instead
/// of copying, the receiver may describe the target and ask the sender to copy, which is faster. The sender then copies
/// and sets the offer to `done`, or leaves the copy to the receiver. If the sender does not begin the copy soon, the
/// receiver withdraws its request and copies. A sender that must not wait withdraws an offer that the receiver has not
/// taken. A sender may also copy without being asked, if it finds an advertised receive for the message
/// (advertisement_board.h).
///
/// When one rank reads what the other rank has written to an offer's cell, the cache line moves between two processors.
/// To avoid some of these transfers, a sender does not write to the cell of an offer that it will never withdraw (a
/// kept offer), and the receiver does not write to the cell when it takes a kept offer.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

/// Callers of these functions must hold a progress::guard, except where the function's comment says "Thread safe".
class offer_board {
 public:
  /// Returns the board of this job; nullptr before MPI_Init, after MPI_Finalize, and in all ranks of this machine if
  /// direct copies are off or one of the ranks cannot map the shared memory. Thread safe.
  [[nodiscard]] static offer_board* current() noexcept;
  /// Opens the board. job::begin calls this in every rank, before the first message. Collective over the ranks of this
  /// machine.
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

  /// The memory to which the receiver asks the sender to copy, and the shape of the copy.
  struct target {
    peer_bytes place{};
    box_copy shape{};
  };

  // ---- the sender

  /// Makes an offer. Returns nullopt if all slots are in use. `kept`: the sender will not call withdraw() for this
  /// offer.
  [[nodiscard]] std::optional<offer> make(bool kept);
  /// Tells the receiver that a thread of the sender stays in MPI until the message has completed.
  void await(const offer& of) noexcept;
  [[nodiscard]] stage stage_of(const offer& of) const noexcept;
  /// Like stage_of(), but spins for at most some microseconds until the receiver has changed the stage, or until
  /// is_news() returns true.
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
  /// Sets the stage from `asked` to `pushing`; the sender must then copy. Returns false, without effect, if the
  /// receiver has withdrawn its request.
  [[nodiscard]] bool begin_push(const offer& of) noexcept;
  /// Returns the target that the receiver has described. Call this only in stage `pushing`.
  [[nodiscard]] target target_of(const offer& of) const noexcept { return rows_[rank_].of_offer[of.slot].wanted; }
  /// End the stage `pushing`: pushed() tells the receiver that the sender has copied all bytes, leave() that the
  /// receiver must copy them.
  void pushed(const offer& of) noexcept { set(rank_, of, stage::done); }
  void leave(const offer& of) noexcept { set(rank_, of, stage::left); }
  /// Returns false, without effect, if the receiver has taken the offer.
  [[nodiscard]] bool withdraw(const offer& of) noexcept;
  /// Frees the slot of the offer.
  void end(const offer& of) noexcept;

  // ---- copies without a request, to advertised receives. The next functions record and return how the copy has ended.

  void copied(const offer& of) noexcept {
    rows_[rank_].of_offer[of.slot].copied.store(of.turn, std::memory_order_release);
  }
  /// Records that the copy has failed, so that the receiver must fetch the bytes.
  void fail(const offer& of) noexcept;
  /// Whether the copy of rank `rank` for this offer has ended. watch_copy() first spins for some microseconds.
  [[nodiscard]] bool is_copied(int rank, const offer& of) const noexcept;
  [[nodiscard]] bool watch_copy(int rank, const offer& of) const noexcept;
  [[nodiscard]] bool has_failed(int rank, const offer& of) const noexcept {
    return rows_[rank].of_offer[of.slot].failed.load(std::memory_order_acquire) == of.turn;
  }

  /// Records that this rank sends from a device. The first call returns another rank of this machine that has recorded
  /// the same device; nullopt if there is none. Later calls return nullopt. Thread safe.
  using device_id = std::array<std::byte, 16>;
  [[nodiscard]] std::optional<int> sends_from(const device_id& device) noexcept;

  /// Records that rank `rank`, on this machine, cannot access the memory that the calling rank offers. Thread safe.
  void set_of_no_use(int rank) noexcept { of_no_use_[rank].store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_of_no_use(int rank) const noexcept { return of_no_use_[rank].load(std::memory_order_relaxed); }

  // ---- the receiver. `rank`: the sender of the offer, a rank of this machine.

  /// Takes an offer. Returns false if the sender has withdrawn it.
  [[nodiscard]] bool take(int rank, const offer& of) noexcept;
  /// Sets a kept offer to `taken`, so that the sender sees that the receiver has taken it. For any other offer, take()
  /// has done this.
  void show_taken(int rank, const offer& of) noexcept {
    if (of.kept) set(rank, of, stage::taken);
  }
  [[nodiscard]] bool is_awaited(int rank, const offer& of) const noexcept;
  /// Asks the sender of a taken offer to copy to the target `wanted`. The sender then sets the stage to `pushing`, and
  /// later to `done` or `left`.
  void ask(int rank, const offer& of, const target& wanted) noexcept;
  /// Withdraws the request to the sender, so that the receiver can copy. Returns false, without effect, if the sender
  /// has begun the copy.
  [[nodiscard]] bool take_back(int rank, const offer& of) noexcept;
  /// Return the stage of an offer; `done` if the slot contains a later offer. watch() first spins for some microseconds
  /// while the stage is `asked` or `pushing`.
  [[nodiscard]] stage stage_of(int rank, const offer& of) const noexcept;
  [[nodiscard]] stage watch(int rank, const offer& of) const noexcept;
  void done(int rank, const offer& of) noexcept { set(rank, of, stage::done); }
  /// Tells the sender that the receiver has matched the offer's message, which the sender copies without being asked.
  void matched(int rank, const offer& of) noexcept { set(rank, of, stage::matched); }

  // ---- which receives the ranks of this machine inspect (receive_inspection.h). These functions are thread safe.

  /// Asks all ranks of this machine to inspect their receives.
  void want_inspection() noexcept { rows_[0].wants_inspection.store(true); }
  [[nodiscard]] bool is_inspection_wanted() const noexcept {
    return rows_[0].wants_inspection.load(std::memory_order_acquire);
  }
  /// Tells other ranks that this rank checks each message for an envelope if its receive buffer is large enough for an
  /// envelope of full length.
  void set_takes_envelopes() noexcept { rows_[rank_].takes_envelopes.store(true, std::memory_order_release); }
  [[nodiscard]] bool takes_envelopes(int rank) const noexcept {
    return rows_[rank].takes_envelopes.load(std::memory_order_acquire);
  }

  /// Tells other ranks that this rank checks each message that it receives for an envelope. Other ranks may then send
  /// this rank messages of any size by envelope.
  void set_looks() noexcept;
  [[nodiscard]] bool looks(int rank) const noexcept;

 private:
  static constexpr std::uint32_t slots = 1023;
  // Each cell has its own cache lines.
  struct alignas(64) cell {
    std::atomic<std::uint64_t> state;
    std::atomic<std::uint32_t> awaited;  // the turn of the offer for which a thread of the sender waits in MPI
    std::atomic<std::uint32_t> copied;   // the turn of the last offer for which a copy without a request has ended
    std::atomic<std::uint32_t> failed;   // the turn of the last offer for which a copy without a request has failed
    target wanted;
  };
  struct row {
    alignas(64) std::atomic<bool> takes_envelopes;
    std::atomic<bool> looks;
    std::atomic<bool> wants_inspection;  // used only in the row of rank 0, for all ranks of the machine
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
