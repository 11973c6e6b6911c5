#pragma once

/// Receives that ranks announce to senders of the same machine, in shared memory. A sender that finds the announcement
/// of a receive for its message claims it, and copies at once: the message then takes one copy and no handshake
/// (receiver-initiated rendezvous).
///
/// A claim is a guess. MPI alone decides which message a receive gets, so the envelope is sent as always. If the
/// receive gets the message of the claim, the receiver tells the sender so (offer_board::matched()), and has only to
/// wait for the copy. If the receive gets another message, that message overwrites the buffer after the copy, and the
/// sender of the claim goes on as if it had not copied.

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/messages/board/offers.h"
#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

/// Call its functions under progress::guard unless they say otherwise.
class announcement_board {
 public:
  /// The board of this job; nullptr if the ranks of this machine do not announce. Thread safe.
  [[nodiscard]] static announcement_board* current() noexcept;
  /// job::begin calls it in every rank, after offer_board::open(): collective over the ranks of this machine.
  static void open(const job& of, MPI_Comm machine);
  static void close() noexcept;

  /// Names a communicator of a sender, as long as the sender has it. A later communicator may get the same name.
  using communicator_name = std::uint32_t;
  [[nodiscard]] static communicator_name name_of(MPI_Comm comm) noexcept;

  // ---- the receiver
  /// A sender that has sent memory of the driver to this rank: its rank in MPI_COMM_WORLD, and its communicator.
  struct correspondent {
    int rank = 0;
    communicator_name communicator = 0;
    unsigned unannounced = 0;  ///< the number of receives that are not announced, after a claim for another message
  };
  /// Records that an envelope from rank `source` of `comm` came from rank `rank` of MPI_COMM_WORLD, whose own name for
  /// the communicator is `communicator`.
  void learn(MPI_Comm comm, int source, int rank, communicator_name communicator);
  /// The sender to whom a receive is to be announced; nullptr if there is none.
  [[nodiscard]] const correspondent* sender_of(MPI_Comm comm, int source);
  /// A sender has claimed the announcement of a receive for another message: the next receives are not announced.
  void mistaken(MPI_Comm comm, int source);

  /// An announced receive. The destructor takes the announcement back; if a sender has claimed it, the destructor waits
  /// until the copy is over. Both ranks wait for ever if both wait there, so callers ask is_over() first.
  class announcement {
   public:
    announcement(announcement_board& board, int sender, std::uint32_t number)
        : board_(board), sender_(sender), number_(number) {}
    ~announcement();
    announcement(const announcement&) = delete;
    announcement& operator=(const announcement&) = delete;

    /// The offer for whose message the sender has claimed the announcement. If there is none, takes the announcement
    /// back.
    [[nodiscard]] std::optional<offer_board::offer> claim();
    /// Whether the copy for a claim is over. It is if the sender has made it, or has failed to.
    [[nodiscard]] bool is_over();
    [[nodiscard]] int sender() const noexcept { return sender_; }

   private:
    announcement_board& board_;
    const int sender_;
    const std::uint32_t number_;
    bool taken_back_ = false;
  };
  /// Returns nullptr if too many receives are announced to the sender.
  [[nodiscard]] std::unique_ptr<announcement> announce(const correspondent& to, int tag, std::size_t bytes,
                                                       const peer_bytes& place);

  // ---- the sender
  /// Whether a receiver may have announcements that are not claimed. Costs one load.
  [[nodiscard]] bool has_any(int receiver) const noexcept;
  /// Claims the oldest announcement of a receive for a message, if the sender may copy there (`may_copy(place)`).
  template <class MayCopy>
  [[nodiscard]] std::optional<peer_bytes> claim(int receiver, communicator_name comm, int tag, std::size_t bytes,
                                                const offer_board::offer& with, MayCopy&& may_copy) {
    const auto found = find(receiver, comm, tag, bytes);
    if (!found || !may_copy(found->place) || !claim(receiver, found->number, with)) return std::nullopt;
    return found->place;
  }

 private:
  // Each pair of ranks has its own cells, used in turn: the receiver announces and takes back, the sender claims.
  static constexpr std::uint32_t cells = 64;
  enum class stage : std::uint32_t { unused, announced, claimed };
  // The members that change with every message lie in the first cache line. The receiver writes `place` only if it
  // differs from the cell's last one, so the caches of both processors keep the lines of `place`.
  struct alignas(64) cell {
    std::atomic<std::uint64_t> state;     // number of the announcement, and stage
    std::atomic<std::uint64_t> claimant;  // the sender's offer
    std::size_t bytes;
    std::uint64_t offset;  // of the place
    communicator_name communicator;
    int tag;
    alignas(64) peer_bytes place;  // but for the offset
  };
  using pair = std::array<cell, cells>;
  struct found_cell {
    std::uint32_t number;
    peer_bytes place;
  };

  static std::uint64_t word(std::uint32_t number, stage s) noexcept {
    return std::uint64_t{number} << 32 | static_cast<std::uint32_t>(s);
  }
  static std::uint32_t number_in(std::uint64_t state) noexcept { return static_cast<std::uint32_t>(state >> 32); }
  [[nodiscard]] cell& cell_of(int receiver, int sender, std::uint32_t number) const noexcept {
    return pairs_[static_cast<std::size_t>(place_[static_cast<std::size_t>(receiver)]) * members_ +
                  static_cast<std::size_t>(place_[static_cast<std::size_t>(sender)])][number % cells];
  }
  [[nodiscard]] std::optional<found_cell> find(int receiver, communicator_name comm, int tag, std::size_t bytes);
  [[nodiscard]] bool claim(int receiver, std::uint32_t number, const offer_board::offer& with);

  announcement_board(pair* pairs, std::vector<int> place, std::size_t members, int rank);

  pair* const pairs_;
  const std::vector<int> place_;  // by rank in MPI_COMM_WORLD: rank among those of this machine
  const std::size_t members_;
  const int rank_;
  // By rank: the number of the next announcement to a sender, and of a receiver's first one that may still be claimed.
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> first_;
  std::map<std::pair<MPI_Comm, int>, correspondent> correspondents_;
};

}  // namespace hpe::interpose::mpi
