#pragma once

/// Receives that ranks announce to senders on the same machine, in shared memory. A sender that finds an announced
/// receive for its message claims the receive and copies at once. The message then needs a single copy and no handshake
/// (receiver-initiated rendezvous).
///
/// Only MPI decides which message matches a receive, so the sender also sends the envelope. The copy may begin before
/// MPI has matched the envelope, and must not go to the wrong buffer: if a shorter message arrived there, the copy
/// would have changed the bytes behind that message. So both sides make sure that MPI will match the two: the sender
/// claims an announcement only for the first message that no receive has matched (unmatched_sends.h), and the receiver
/// announces a receive only if no other one precedes it (unannounced_receives.h). When the message has matched, the
/// receiver reports that to the sender (offer_board::matched()) and only waits for the copy. If another message matches
/// nevertheless, that message is written to the buffer after the copy has ended, and the sender continues as if it had
/// not copied.

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

/// The functions must be called while a progress::guard exists, unless their description says otherwise.
class announcement_board {
 public:
  /// The board of this job; nullptr if the ranks of this machine do not announce receives. Thread safe.
  [[nodiscard]] static announcement_board* current() noexcept;
  /// Called by job::begin in every rank, after offer_board::open(); collective over the ranks of this machine.
  static void open(const job& of, MPI_Comm machine);
  static void close() noexcept;

  /// Identifies a communicator of a sender until the sender frees the communicator. A later communicator may have the
  /// same name.
  using communicator_name = std::uint32_t;
  [[nodiscard]] static communicator_name name_of(MPI_Comm comm) noexcept;

  // ---- the receiver

  /// A sender that has sent this rank messages whose payloads were in memory of the CUDA driver: the sender's rank in
  /// MPI_COMM_WORLD and its communicator.
  struct correspondent {
    int rank = 0;
    communicator_name communicator = 0;
    unsigned unannounced = 0;  ///< after a wrong claim: the number of next receives that are not announced
  };
  /// Records the sender of an envelope: rank `source` of `comm` is rank `rank` of MPI_COMM_WORLD, and that rank's own
  /// name for the communicator is `communicator`.
  void learn(MPI_Comm comm, int source, int rank, communicator_name communicator);
  /// The sender to which a receive should be announced; nullptr if the receive should not be announced.
  [[nodiscard]] const correspondent* sender_of(MPI_Comm comm, int source);
  /// To be called when a sender has claimed the announcement of a receive, but another message has matched the receive.
  /// The next receives from this sender are then not announced.
  void mistaken(MPI_Comm comm, int source);

  /// The messages for which a receive is announced.
  struct messages {
    int sender = 0;  ///< rank in MPI_COMM_WORLD
    communicator_name communicator = 0;
    int tag = 0;

    friend bool operator==(const messages&, const messages&) = default;
  };

  /// Announces a receive while the object exists. The destructor withdraws the announcement; if a sender has claimed
  /// it, the destructor waits until that sender's copy has ended. If two ranks waited for each other in this
  /// destructor, both would wait forever; therefore callers first test is_over().
  class announcement {
   public:
    announcement(announcement_board& board, const messages& about, std::uint32_t number);
    ~announcement();
    announcement(const announcement&) = delete;
    announcement& operator=(const announcement&) = delete;

    /// If a sender has claimed the announcement for a message, returns the offer of that message. Otherwise withdraws
    /// the announcement and returns nullopt.
    [[nodiscard]] std::optional<offer_board::offer> claim();
    /// Whether the announcement is not claimed, or the copy for the claim has ended. A copy has ended when the sender
    /// has made it or has failed to make it.
    [[nodiscard]] bool is_over();
    [[nodiscard]] const messages& about() const noexcept { return about_; }

   private:
    announcement_board& board_;
    const messages about_;
    const std::uint32_t number_;
    bool taken_back_ = false;
  };
  /// Announces a receive to a sender. Returns nullptr if too many receives are announced to this sender.
  [[nodiscard]] std::unique_ptr<announcement> announce(const correspondent& to, int tag, std::size_t bytes,
                                                       const peer_bytes& place);
  /// To be called when a receive has matched a message, before the sender is told. Withdraws all unclaimed
  /// announcements for these messages that are older than the receive's own (all, if `own` is nullptr). MPI has matched
  /// their receives, too, but may not have completed them.
  void withdraw_before(const announcement* own, const messages& about);

  // ---- the sender

  /// Whether a receiver may have announcements that no sender has claimed. Costs one load.
  [[nodiscard]] bool has_any(int receiver) const noexcept;
  /// Claims the oldest announcement for a message, if the message fits into the receive and the sender can copy to the
  /// receive's place (may_copy(place) is true).
  template <class MayCopy>
  [[nodiscard]] std::optional<peer_bytes> claim(int receiver, communicator_name comm, int tag, std::size_t bytes,
                                                const offer_board::offer& with, MayCopy&& may_copy) {
    const auto found = find(receiver, comm, tag, bytes);
    if (!found || !may_copy(found->place) || !claim(receiver, found->number, with)) return std::nullopt;
    return found->place;
  }

 private:
  // Each pair of ranks has its own cells, which are used in rotation: the receiver announces and withdraws, the sender
  // claims.
  static constexpr std::uint32_t cells = 64;
  enum class stage : std::uint32_t { unused, announced, claimed };
  // The members that change with every message are in the first cache line. The receiver writes `place` only if it
  // differs from the previous place in the cell, so that the cache lines of `place` stay in the caches of both
  // processors.
  struct alignas(64) cell {
    std::atomic<std::uint64_t> state;     // number of the announcement and its stage
    std::atomic<std::uint64_t> claimant;  // the offer of the sender that has claimed the announcement
    std::size_t bytes;
    std::uint64_t offset;  // the offset of `place`
    communicator_name communicator;
    int tag;
    alignas(64) peer_bytes place;  // the place, without its offset
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
  const std::vector<int> place_;  // for each rank of MPI_COMM_WORLD: its rank among the ranks of this machine, or -1
  const std::size_t members_;
  const int rank_;
  // Both are indexed by rank. next_: the number of the next announcement to each sender. first_: the number of each
  // receiver's first announcement that may still be claimed.
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> first_;
  std::map<std::pair<MPI_Comm, int>, correspondent> correspondents_;
  std::vector<announcement*> announced_;  // in their order
};

}  // namespace hpe::interpose::mpi
