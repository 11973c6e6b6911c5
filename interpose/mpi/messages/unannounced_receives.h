#pragma once

/// The receives in progress that are not announced (board/announcements.h). Such a receive gets a message before all
/// later receives that match the message. If a later one was announced, the sender would copy the message into the
/// wrong buffer. So no receive is announced while one of these receives may get its message.

#include <atomic>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// One of these receives, from before it is posted until its message is complete. The functions must be called while a
/// progress::guard exists, unless their description says otherwise.
class unannounced_receive {
 public:
  unannounced_receive(MPI_Comm comm, int source, int tag);
  ~unannounced_receive();
  unannounced_receive(const unannounced_receive&) = delete;
  unannounced_receive& operator=(const unannounced_receive&) = delete;

  /// Whether one of these receives may get a message of this source with this tag, neither of which is a wildcard.
  [[nodiscard]] static bool may_precede(MPI_Comm comm, int source, int tag);

  /// If several threads may be in MPI: a call that receives, during which no receive is announced by other threads.
  /// Thread safe, without a guard.
  class call {
   public:
    call();
    ~call();
    call(const call&) = delete;
    call& operator=(const call&) = delete;

   private:
    bool counts_;
  };

 private:
  enum class record : unsigned char { none, counted, listed };

  const MPI_Comm comm_;
  const int source_;
  const int tag_;
  record record_;
};

}  // namespace hpe::interpose::mpi
