#pragma once

/// Sends by envelope: of a large message from memory of hpe, or of a message of any size from memory of the driver. The
/// receiver or the sender reads the bytes after the receiver has matched the envelope, or once the offer is withdrawn.

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
    byte_rows rows;         ///< the bytes, from `from` on; one run if the memory is hpe's
    int destination;        ///< rank in comm
    int world_rank;         ///< the destination's rank in MPI_COMM_WORLD
    int tag;
    MPI_Comm comm;
    adopted_pointers* driver;          ///< set if the memory is the driver's; nullptr if it is hpe's
    std::optional<peer_bytes> shared;  ///< names the driver's memory to the receiver, if that can reach it
    /// Set if `from` is device memory of hpe: each start first copies bytes of the program there. These bytes are not
    /// contiguous, or the driver cannot share their memory.
    struct origin {
      const std::byte* address;
      scattered_bytes which;
      std::shared_ptr<std::byte> copy;
    };
    std::optional<origin> gathered;
  };
  struct mode {
    bool persistent = false;
    bool synchronous = false;  ///< not over before the receiver has matched the message
    bool blocking = false;     ///< the calling thread stays in MPI until the send is over
  };
  outgoing(const arguments& what, mode how)
      : message(what.comm, how.persistent), what_(what), synchronous_(how.synchronous), blocking_(how.blocking) {}

  void await() override;

 private:
  /// Waits for kernels that write the bytes, and exports the bytes to a receiver on this machine. Throws hpe::error if
  /// the only copy of the bytes was on a device that is lost.
  void prepare() override;
  int start() override;
  void end_export();
  void watch_offer();
  [[nodiscard]] bool look_at_offer();
  void leave_line();
  void copy_unasked();
  [[nodiscard]] bool may_copy_to(const peer_bytes& place) const;
  void await_unasked_copy();
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
  bool awaited_ = false;     // the calling thread stays in MPI until the send is over
  envelope::wire envelope_;  // packed at each start
  std::size_t chunk_ = 0;
  std::optional<hpeExport> exported_;
  std::optional<offer_board::offer> offer_;
  std::uint64_t sequence_ = 0;
  std::chrono::steady_clock::time_point patient_until_;
  bool in_line_ = false;                // nothing is known of the receive of this message
  std::optional<device_copy> unasked_;  // copy in progress to a receive that its rank has announced
  int parts_left_ = 0;                  // two at first: the envelope and the payload
  int code_ = MPI_SUCCESS;
  std::optional<error> failure_;
};

/// Makes the send for the arguments of a call; returns nullptr if the message does not go by envelope.
[[nodiscard]] std::shared_ptr<outgoing> send_by_envelope(const void* buf, int count, MPI_Datatype type, int dest,
                                                         int tag, MPI_Comm comm, outgoing::mode how);

}  // namespace hpe::interpose::mpi
