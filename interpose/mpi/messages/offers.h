#pragma once

/// What ranks of one machine tell each other about messages that the receiver copies from the sender's device, through
/// memory that they share: an answer takes no message of MPI.
///
/// A sender makes an offer for each such message and names it in the envelope. The receiver takes it before it copies
/// and says when it is done. A sender that may not wait withdraws an offer that nobody has taken.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

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

  // ---- the sender
  /// Empty when too many messages are under way.
  [[nodiscard]] std::optional<offer> make();
  [[nodiscard]] bool is_done(const offer& of) const noexcept;
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
  void done(int rank, const offer& of) noexcept;

  // ---- receives with less room than an envelope. Any thread.
  /// From now on this rank looks at all its receives, so that messages of any size may go by envelopes to it.
  void set_looks() noexcept;
  [[nodiscard]] bool looks(int rank) const noexcept;

 private:
  static constexpr std::uint32_t slots = 1023;
  // A cache line each.
  struct alignas(64) cell {
    std::atomic<std::uint64_t> state;
  };
  struct row {
    cell looks;
    cell of_offer[slots];
  };
  enum class stage : std::uint32_t { withdrawn, offered, taken, done };

  static std::uint64_t word(const offer& of, stage s) noexcept {
    return std::uint64_t{of.turn} << 32 | static_cast<std::uint32_t>(s);
  }
  offer_board(row* rows, int rank, std::size_t ranks);

  row* const rows_;  // of each rank in MPI_COMM_WORLD
  const int rank_;
  const std::unique_ptr<std::atomic<bool>[]> of_no_use_;  // by rank
  std::vector<offer> free_;
};

}  // namespace hpe::interpose::mpi
