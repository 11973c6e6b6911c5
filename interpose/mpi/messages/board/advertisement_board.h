#pragma once

/// Receives that ranks advertise to senders on the same machine, in shared memory. If a sender finds an advertised
/// receive for its message, it claims the advertisement and copies the message to the receive buffer at once. The
/// message then needs a single copy and no handshake (receiver-initiated rendezvous).
///
/// Only MPI decides which message matches a receive, so the sender also sends an envelope (envelope.h). The copy may
/// begin before MPI has matched the envelope with the receive. If MPI then matched the receive with another, shorter
/// message, the copy would have overwritten bytes after the end of this message. So both ranks make sure that MPI will
/// match the envelope with the receive. The sender claims an advertisement only for the first of its messages that no
/// receive has matched (unmatched_sends.h). The receiver advertises a receive only if no other receive could get the
/// message first (unadvertised_receives.h). When MPI has matched the envelope with the receive, the receiver tells the
/// sender (offer_board::matched()) and waits for the end of the copy. If MPI nevertheless matches another message with
/// the receive, the receiver waits until the copy has ended and then writes this other message to the buffer. The
/// sender then sends its own message as if it had not copied it.

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

/// Callers of these functions must hold a progress::guard, except where the function's comment says "Thread safe".
class advertisement_board {
 public:
  /// Returns the board of this job; nullptr if the ranks of this machine do not advertise receives, for example because
  /// there are more than 32 ranks. Thread safe.
  [[nodiscard]] static advertisement_board* current() noexcept;
  /// Opens the board. job::begin calls this in every rank, after offer_board::open(). Collective over the ranks of this
  /// machine.
  static void open(const job& of, MPI_Comm machine);
  static void close() noexcept;

  /// Identifies a communicator in the sender's process until the sender frees the communicator. A communicator that the
  /// sender creates later may have the same name.
  using communicator_name = std::uint32_t;
  [[nodiscard]] static communicator_name name_of(MPI_Comm comm) noexcept;

  // ---- the receiver

  /// A sender from which this rank has received messages in memory of the CUDA driver: the sender's rank in
  /// MPI_COMM_WORLD, and the sender's name of the communicator.
  struct correspondent {
    int rank = 0;
    communicator_name communicator = 0;
    unsigned unadvertised = 0;  ///< after a wrong claim: the number of following receives that are not advertised
  };
  /// Records the sender of an envelope: rank `source` of `comm` is rank `rank` of MPI_COMM_WORLD, and names the
  /// communicator `communicator`.
  void learn(MPI_Comm comm, int source, int rank, communicator_name communicator);
  /// Returns the sender to which a receive should be advertised; nullptr if the receive should not be advertised.
  [[nodiscard]] const correspondent* sender_of(MPI_Comm comm, int source);
  /// Call this when a sender has claimed the advertisement of a receive, but MPI has matched another message with the
  /// receive. sender_of() then returns nullptr for the next 64 receives from this sender.
  void mistaken(MPI_Comm comm, int source);

  /// Describes the messages that an advertised receive can match.
  struct messages {
    int sender = 0;  ///< rank in MPI_COMM_WORLD
    communicator_name communicator = 0;
    int tag = 0;

    friend bool operator==(const messages&, const messages&) = default;
  };

  /// Advertises a receive while the object exists. The destructor withdraws the advertisement. If a sender has claimed
  /// it, the destructor waits until the sender's copy has ended. If two ranks waited for each other in this destructor,
  /// both would wait forever, so callers must destroy the object only after is_over() has returned true.
  class advertisement {
   public:
    advertisement(advertisement_board& board, const messages& about, std::uint32_t number);
    ~advertisement();
    advertisement(const advertisement&) = delete;
    advertisement& operator=(const advertisement&) = delete;

    /// If a sender has claimed the advertisement for a message, returns the offer of that message. Otherwise withdraws
    /// the advertisement and returns nullopt.
    [[nodiscard]] std::optional<offer_board::offer> claim();
    /// Withdraws the advertisement if no sender has claimed it. Returns true if no sender has claimed it, or if the
    /// copy of the sender that has claimed it has succeeded or failed.
    [[nodiscard]] bool is_over();
    [[nodiscard]] const messages& about() const noexcept { return about_; }

   private:
    advertisement_board& board_;
    const messages about_;
    const std::uint32_t number_;
    bool taken_back_ = false;
  };
  /// Advertises a receive to a sender. Returns nullptr if too many receives are advertised to this sender.
  [[nodiscard]] std::unique_ptr<advertisement> advertise(const correspondent& to, int tag, std::size_t bytes,
                                                         const peer_bytes& place);
  /// Call this when MPI has matched a receive with a message, before the receiver tells the sender. Withdraws all
  /// unclaimed advertisements for `about` that are older than `own`, the receive's own advertisement. If `own` is
  /// nullptr, withdraws all unclaimed advertisements for `about`. MPI has matched the receives of the withdrawn
  /// advertisements, too, but may not have completed them.
  void withdraw_before(const advertisement* own, const messages& about);

  // ---- the sender

  /// Whether a receiver may have advertisements for this rank that this rank has not claimed. Costs one load.
  [[nodiscard]] bool has_any(int receiver) const noexcept;
  /// Claims the oldest advertisement that matches a message of `bytes` bytes, and returns the address of the receive
  /// buffer. `with`: the offer of the message. Returns nullopt, without effect, if there is no such advertisement, if
  /// the message is longer than the receive buffer, or if may_copy(buffer address) is false.
  template <class MayCopy>
  [[nodiscard]] std::optional<peer_bytes> claim(int receiver, communicator_name comm, int tag, std::size_t bytes,
                                                const offer_board::offer& with, MayCopy&& may_copy) {
    const auto found = find(receiver, comm, tag, bytes);
    if (!found || !may_copy(found->place) || !claim(receiver, found->number, with)) return std::nullopt;
    return found->place;
  }

 private:
  // Each pair of receiver and sender has its own cells, which are used in rotation. The receiver writes advertisements
  // into cells and withdraws them; the sender claims them.
  static constexpr std::uint32_t cells = 64;
  enum class stage : std::uint32_t { unused, advertised, claimed };
  // The members that change with every message are in the first cache line. The receiver writes `place` only if its
  // value changes, so that the other cache lines stay in the caches of both ranks' processors.
  struct alignas(64) cell {
    std::atomic<std::uint64_t> state;     // the number of the advertisement, and its stage
    std::atomic<std::uint64_t> claimant;  // the offer of the sender that has claimed the advertisement
    std::size_t bytes;
    std::uint64_t offset;  // the offset of the receive buffer in the memory that `place` describes
    communicator_name communicator;
    int tag;
    alignas(64) peer_bytes place;  // the memory that contains the receive buffer; its own member `offset` is 0
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

  advertisement_board(pair* pairs, std::vector<int> place, std::size_t members, int rank);

  pair* const pairs_;
  const std::vector<int> place_;  // for each rank of MPI_COMM_WORLD: its rank among the ranks of this machine, or -1
  const std::size_t members_;
  const int rank_;
  // By rank: next_ contains the number of the next advertisement to each sender; first_ contains the number of each
  // receiver's oldest advertisement that this rank may claim.
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> first_;
  std::map<std::pair<MPI_Comm, int>, correspondent> correspondents_;
  std::vector<advertisement*> advertised_;  // in the order in which they were made
};

}  // namespace hpe::interpose::mpi
