#pragma once

/// A send by envelope (envelope.h): of a large message in hpe memory, or of a message of any size in memory of the CUDA
/// driver. The bytes are read when the receiver has matched the envelope, when the sender finds an advertised receive,
/// or when the sender withdraws its offer. At the start of a persistent send, the receiver may not accept envelopes yet
/// (board/receive_inspection.h); MPI then sends a host copy of the bytes.

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
    box rows;               ///< the shape of the bytes from `from` on; a single row if the bytes are in hpe memory
    int destination;        ///< the rank of the destination in `comm`
    int world_rank;         ///< the rank of the destination in MPI_COMM_WORLD
    int tag;
    MPI_Comm comm;
    /// The object that manages the memory if it is memory of the driver; nullptr for hpe memory.
    adopted_pointers* driver;
    /// The memory of the driver, in the form in which a receiver can access it; nullopt if the receiver cannot access
    /// it.
    std::optional<peer_bytes> shared;
    /// The program's bytes, if `from` is borrowed device memory of hpe into which each start first copies these bytes.
    /// This copy is needed if the program's bytes do not form equal rows, or if the driver cannot share the memory of
    /// these bytes.
    struct origin {
      const std::byte* address;
      scattered_bytes which;
      std::shared_ptr<std::byte> copy;
    };
    std::optional<origin> gathered;
  };
  struct mode {
    bool persistent = false;
    bool synchronous = false;  ///< whether the send completes only after the receiver has matched the message
    bool blocking = false;     ///< whether the calling thread stays in MPI until the send has completed
  };
  outgoing(const arguments& what, mode how)
      : message(what.comm, how.persistent), what_(what), synchronous_(how.synchronous), blocking_(how.blocking) {}

  void await() override;

 private:
  /// In memory of the driver, gathers the bytes if necessary. In hpe memory, waits for the kernels that write the
  /// bytes, and exports the bytes to a receiver on this machine; throws hpe::error if the only copy of the bytes was on
  /// a device that is lost.
  void prepare() override;
  int start() override;
  [[nodiscard]] int send_whole();
  void end_export();
  void watch_offer();
  [[nodiscard]] bool look_at_offer();
  void matched();
  void copy_unasked();
  [[nodiscard]] bool may_copy_to(const peer_bytes& place) const;
  void await_unasked_copy();
  void push();
  void end_offer();
  void withdraw();
  using host_copy = std::shared_ptr<std::byte[]>;
  [[nodiscard]] host_copy packed() const;
  [[nodiscard]] host_copy packed_or_zeros(std::optional<error>& failure) const;
  void send_packed(int tag);
  void answered(const envelope_answer& given);
  void part_over(int code, const std::optional<error>& failure);

  arguments what_;
  const bool synchronous_;
  const bool blocking_;
  bool awaited_ = false;     // whether a thread of the program stays in MPI until the send has completed
  envelope::wire envelope_;  // the packed envelope; each start packs a new one
  host_copy whole_;          // the host copy of the current start, if MPI sends the bytes itself
  std::size_t chunk_ = 0;
  std::optional<hpeExport> exported_;
  std::optional<offer_board::offer> offer_;
  std::uint64_t sequence_ = 0;
  std::chrono::steady_clock::time_point patient_until_;
  bool seeks_receive_ = false;          // whether the sender looks for an advertised receive for its message
  std::optional<device_copy> unasked_;  // the copy in progress to an advertised receive
  int parts_left_ = 0;                  // how many of the two parts, the envelope and the payload, have not been sent
  int code_ = MPI_SUCCESS;
  std::optional<error> failure_;
};

/// Creates the send for the arguments of a call. Returns nullptr if MPI must send the message itself, without an
/// envelope.
[[nodiscard]] std::shared_ptr<outgoing> send_by_envelope(const void* buf, int count, MPI_Datatype type, int dest,
                                                         int tag, MPI_Comm comm, outgoing::mode how);

}  // namespace hpe::interpose::mpi
