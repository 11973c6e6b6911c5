#pragma once

/// The messages that this process has sent and of which it does not know whether receives have matched them. MPI
/// matches the messages to one rank with one communicator and tag in the order in which they were sent. So a sender
/// that copies a message into an announced receive (board/announcements.h) must know that all its earlier messages of
/// this kind are matched: an earlier one would get the receive, and the copy would have overwritten bytes behind it.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/messages/board/announcements.h"
#include "interpose/mpi/real.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// Where a message goes. Messages with equal addresses are matched in order.
struct send_address {
  MPI_Comm comm{};
  int destination = 0;  ///< rank in `comm`
  int tag = 0;

  friend bool operator==(const send_address&, const send_address&) = default;
};

/// Each process has one object. The functions must be called while a progress::guard exists, unless their description
/// says otherwise.
class unmatched_sends {
 public:
  static unmatched_sends& of_process();

  /// Adds the message of an envelope, before the envelope is sent. Numbers identify messages.
  void add(std::uint64_t number, const send_address& to);
  /// The message was not sent.
  void remove(std::uint64_t number);
  /// A receive has matched the message. So receives have matched all earlier messages with the same address.
  void matched(std::uint64_t number);
  /// The sender copies the message into a receive that will match it. Later messages need not wait for that.
  void placed(std::uint64_t number);
  /// Whether receives have matched all earlier messages with the same address, or will match them with their places.
  [[nodiscard]] bool is_next(std::uint64_t number);

  // ---- the messages that MPI itself sends. Thread safe.

  /// To be called before MPI sends a message.
  static void sent_by_mpi(MPI_Comm comm, int destination, int tag) noexcept {
    if (announcement_board::current() == nullptr || destination < 0) return;
    if (!adopted_pointers::exist()) return sent_before_.store(true, std::memory_order_relaxed);
    of_process().note({comm, destination, tag});
  }
  /// To be called when MPI has made a persistent send, and when the program frees a request.
  static void made(MPI_Request request, MPI_Comm comm, int destination, int tag);
  static void freed(MPI_Request request);
  /// To be made before a call that starts requests, and destroyed after the call: MPI may replace their handles.
  class starts {
   public:
    starts(int count, MPI_Request* requests);
    ~starts();
    starts(const starts&) = delete;
    starts& operator=(const starts&) = delete;

   private:
    struct start {
      MPI_Request before;
      MPI_Request* now;
    };
    std::vector<start> of_sends_;
  };

 private:
  struct message {
    std::uint64_t number;
    send_address to;
    std::uint64_t noted;  // number of the last call of note() before the message
    bool placed;
  };
  // What is known of the messages that MPI has sent. One slot stands for many addresses and knows the last one of them;
  // `others` tells that MPI may also have sent messages to other addresses of the slot, which are not matched.
  struct slot {
    send_address last;
    std::uint64_t noted = 0;  // number of the last call of note() for the slot; 0: none yet
    bool matched = true;      // whether the messages to `last` are matched
    bool others = false;
  };

  void note(const send_address& to) noexcept HPE_EXCLUDES(mutex_);
  void settle(const message& its) HPE_EXCLUDES(mutex_);
  [[nodiscard]] slot& slot_of(const send_address& to) HPE_REQUIRES(mutex_);

  // Whether MPI has sent a message before the process had device memory; note() is not called for such messages.
  inline static std::atomic<bool> sent_before_{false};
  inline static std::atomic<bool> any_persistent_{false};

  std::vector<message> messages_;  // in the order of their envelopes
  mutex mutex_;
  std::uint64_t noted_ HPE_GUARDED_BY(mutex_) = 1;
  std::array<slot, 512> slots_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<MPI_Request, send_address> persistent_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::interpose::mpi
