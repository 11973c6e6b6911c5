#pragma once

/// Records the receives in progress that are not advertised (board/advertisement_board.h). MPI matches a message with
/// the oldest receive that fits. If hpe advertised a later receive, the sender could copy the message to the wrong
/// buffer. So hpe advertises a receive only if no unadvertised receive in progress may get the same message.

#include <atomic>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// One receive in progress that is not advertised. The object exists from before the receive is posted until its
/// message has been received. Callers of these functions must hold a progress::guard, except for those of class `call`.
class unadvertised_receive {
 public:
  unadvertised_receive(MPI_Comm comm, int source, int tag);
  ~unadvertised_receive();
  unadvertised_receive(const unadvertised_receive&) = delete;
  unadvertised_receive& operator=(const unadvertised_receive&) = delete;

  /// Whether an unadvertised receive in progress may get a message with this communicator, source and tag. `source` and
  /// `tag` must not be wildcards.
  [[nodiscard]] static bool may_precede(MPI_Comm comm, int source, int tag);

  /// A blocking call of the program that receives. If several threads may be in MPI, other threads advertise no
  /// receives while the object exists. Thread safe.
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
