#pragma once

/// The send of a large message from memory of hpe, or of any from memory of the driver, by an envelope. The bytes are
/// read after the receiver has matched it, by the receiver or by this side.

#include <chrono>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/messages/channel.h"
#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/message.h"

namespace hpe::interpose::mpi {

class outgoing final : public message {
 public:
  struct arguments {
    const std::byte* from;  ///< the first byte
    byte_rows rows;         ///< from there on; of hpe's memory, one run
    int destination;        ///< in comm
    int world_rank;         ///< the same in MPI_COMM_WORLD
    int tag;
    MPI_Comm comm;
    adopted_pointers* driver;          ///< who has the memory; nullptr: it is hpe's
    std::optional<peer_bytes> shared;  ///< of the driver's, at the first start
  };
  struct mode {
    bool persistent = false;
    bool synchronous = false;  ///< not over before the receiver has begun
    bool blocking = false;     ///< the thread stays in MPI until it is over
  };
  outgoing(const arguments& what, mode how)
      : message(what.comm, how.persistent), what_(what), synchronous_(how.synchronous), blocking_(how.blocking) {}

  void await() override;

 private:
  /// Kernels that write the bytes are waited for; they are exported to a receiver on this machine. Throws hpe::error if
  /// the bytes are not all of one allocation.
  void prepare() override;
  int start() override;
  void end_export();
  void watch_offer();
  [[nodiscard]] bool look_at_offer();
  void push();
  void end_offer();
  void withdraw();
  [[nodiscard]] std::size_t extent() const noexcept {
    return (what_.rows.planes - 1) * what_.rows.plane_pitch + (what_.rows.rows - 1) * what_.rows.pitch +
           what_.rows.width;
  }
  [[nodiscard]] std::vector<std::byte> packed() const;
  void send_packed(int tag);
  void answered(const answer& given);
  void part_over(int code, const std::optional<error>& failure);

  arguments what_;
  const bool synchronous_;
  const bool blocking_;
  envelope::wire envelope_{};
  std::size_t chunk_ = 0;
  std::optional<hpeExport> exported_;
  std::optional<offer_board::offer> offer_;
  std::uint64_t sequence_ = 0;
  std::chrono::steady_clock::time_point patient_until_;
  int parts_left_ = 0;  // the envelope, the payload
  int code_ = MPI_SUCCESS;
  std::optional<error> failure_;
};

/// The send with the arguments of a call; nullptr if it goes another way.
[[nodiscard]] std::shared_ptr<outgoing> send_by_envelope(const void* buf, int count, MPI_Datatype type, int dest,
                                                         int tag, MPI_Comm comm, outgoing::mode how);

}  // namespace hpe::interpose::mpi
