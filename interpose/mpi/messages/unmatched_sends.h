#pragma once

/// Records the messages that this process has sent, until it knows that a receive has matched them. MPI matches
/// messages to one rank, with one communicator and tag, in the order in which they were sent. So before a sender copies
/// a message to the buffer of an advertised receive (board/advertisement_board.h), it must know that all its earlier
/// messages with the same rank, communicator and tag are matched. Otherwise MPI could match the receive with an
/// earlier, shorter message, and the copy would have overwritten bytes after the end of this message.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "interpose/mpi/messages/board/advertisement_board.h"
#include "interpose/mpi/messages/job.h"
#include "interpose/mpi/real.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// The destination and tag of a message. MPI matches messages with equal addresses in order.
struct send_address {
  MPI_Comm comm{};
  int destination = 0;  ///< the rank in `comm`
  int tag = 0;

  friend bool operator==(const send_address&, const send_address&) = default;
};

/// Each process has one object. Callers of these functions must hold a progress::guard, except for the functions that
/// are marked as thread safe below.
class unmatched_sends {
 public:
  static unmatched_sends& of_process();

  /// Adds a message that is sent by envelope, before the envelope is sent. `number` identifies the message in the
  /// functions below.
  void add(std::uint64_t number, const send_address& to);
  /// Removes a message that was not sent.
  void remove(std::uint64_t number);
  /// Records that a receive has matched the message. Receives have then matched all earlier messages with the same
  /// address, too.
  void matched(std::uint64_t number);
  /// Records that the sender copies the message to the buffer of a receive before MPI has matched the two. is_next() of
  /// later messages then treats this message as matched.
  void placed(std::uint64_t number);
  /// Whether all earlier messages with the same address are matched, or are marked by placed().
  [[nodiscard]] bool is_next(std::uint64_t number);

  // ---- messages that MPI itself sends. The following functions are thread safe.

  /// Call this before this process sends its first envelope, and before MPI sends a message in place of an envelope.
  static void expect_envelopes() noexcept {
    if (!expects_envelopes.load()) expects_envelopes.store(true);
  }
  /// Create an object before MPI itself sends a message, and destroy it when the function of MPI has returned.
  class by_mpi {
   public:
    by_mpi(MPI_Comm comm, int destination, int tag) noexcept
        : counts_(advertisement_board::current() != nullptr && destination >= 0 && job::has_several_threads()) {
      if (counts_) ++passing_to_mpi;
      if (advertisement_board::current() == nullptr || destination < 0) return;
      if (expects_envelopes.load())
        of_process().note({comm, destination, tag});
      else if (!sent_before.load())
        sent_before.store(true);
    }
    ~by_mpi() {
      if (counts_) --passing_to_mpi;
    }
    by_mpi(const by_mpi&) = delete;
    by_mpi& operator=(const by_mpi&) = delete;

   private:
    const bool counts_;
  };
  /// Call made() when MPI has created a persistent send, and freed() when the program frees a request.
  static void made(MPI_Request request, MPI_Comm comm, int destination, int tag);
  static void freed(MPI_Request request);
  /// Create an object before a call that starts persistent requests, and destroy it after the call. The destructor
  /// stores the new handles of requests whose handles MPI has replaced.
  class starts {
   public:
    starts(int count, MPI_Request* requests);
    ~starts();
    starts(const starts&) = delete;
    starts& operator=(const starts&) = delete;

   private:
    struct start {
      start(MPI_Request handle, MPI_Request* place, const send_address& to) noexcept
          : before(handle), now(place), passing(to.comm, to.destination, to.tag) {}

      MPI_Request before;
      MPI_Request* now;
      by_mpi passing;
    };
    std::list<start> of_sends_;
  };

 private:
  struct message {
    std::uint64_t number;
    send_address to;
    std::uint64_t noted;  // the number of the last call of note() before the message was added
    bool alone;           // whether no other thread was passing a message to MPI when the message was added
    bool placed;
  };
  // The state of messages that MPI has sent to the addresses of one slot. Many addresses share a slot, which stores
  // only the last of these addresses. `others`: whether there may be unmatched messages to other addresses of the slot.
  struct address_slot {
    send_address last;
    std::uint64_t noted = 0;  // the number of the last call of note() for the slot; 0 if there was none
    bool matched = true;      // whether the messages to `last` are matched
    bool others = false;
  };

  void note(const send_address& to) noexcept HPE_EXCLUDES(mutex_);
  void settle(const message& its) HPE_EXCLUDES(mutex_);
  [[nodiscard]] address_slot& slot_of(const send_address& to) HPE_REQUIRES(mutex_);

  // Whether expect_envelopes() has been called, and whether MPI has sent a message before. hpe calls note() only for
  // later messages.
  inline static std::atomic<bool> expects_envelopes{false};
  inline static std::atomic<bool> sent_before{false};
  // The number of by_mpi objects; only counted if several threads may call MPI.
  inline static std::atomic<int> passing_to_mpi{0};
  inline static std::atomic<bool> any_persistent{false};

  std::vector<message> messages_;  // in the order in which their envelopes were sent
  mutex mutex_;
  std::uint64_t noted_ HPE_GUARDED_BY(mutex_) = 1;
  std::array<address_slot, 512> slots_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<MPI_Request, send_address> persistent_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::interpose::mpi
