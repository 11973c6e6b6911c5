#pragma once

/// A receive that MPI may match with an envelope (envelope.h). MPI receives either the message itself or an envelope.
/// After an envelope, hpe fetches the payload. If the receive buffer is smaller than an envelope, MPI receives into
/// hpe's own memory. hpe then checks whether the message fits into the receive buffer; if a payload does not fit, hpe
/// tells the sender that the send has completed.

#include <memory>
#include <optional>
#include <utility>

#include "interpose/mpi/messages/board/advertisement_board.h"
#include "interpose/mpi/messages/channel.h"
#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/message.h"
#include "interpose/mpi/messages/receive_phases.h"
#include "interpose/mpi/messages/set_aside.h"
#include "interpose/mpi/messages/transfer/chunks.h"
#include "interpose/mpi/messages/unadvertised_receives.h"
#include "interpose/mpi/staged_buffer.h"
#include "runtime/base/error.h"

namespace hpe::interpose::mpi {

/// The arguments of a receive.
struct receive {
  void* buffer;
  int count;
  MPI_Datatype type;
  int source;
  int tag;
  MPI_Comm comm;
};

/// Advertises a receive to its sender (board/advertisement_board.h). Call this before the receive is posted to MPI.
/// Returns nullptr if the receive cannot be advertised. The caller must hold a progress::guard.
[[nodiscard]] std::unique_ptr<advertisement_board::advertisement> advertise(const receive& what, const layout& which);

class incoming final : public message {
 public:
  incoming(const receive& what, bool persistent);
  /// For a blocking call: the caller then calls MPI's own receive with the arguments that where() returns.
  incoming(const receive& what, std::unique_ptr<advertisement_board::advertisement> advertised);
  ~incoming() override;

  /// Sets the message to receive, which a probe has already taken out of MPI.
  void found(const matched& what) { in<receive_phase::ready>().found = what; }

  /// The buffer arguments for MPI's own receive.
  struct buffer_arguments {
    void* place;
    int count;
    MPI_Datatype type;
  };

  /// For a blocking call that uses MPI's own receive: where() returns the buffer arguments for MPI's receive. After the
  /// receive, is_left() returns true if MPI has received an envelope or too many bytes; the caller must then call
  /// carry_out(). If is_left() returns false, the message is in the program's buffer.
  [[nodiscard]] buffer_arguments where() const noexcept;
  [[nodiscard]] bool is_left(const MPI_Status& status);
  /// Waits until no sender copies to the buffer. Call this if MPI's own receive has failed or was not made. The caller
  /// must not hold a progress::guard.
  void await_settled();
  /// Sets the memory into which MPI has received, if the caller did not use where() because the buffer is smaller than
  /// an envelope.
  void landed(std::shared_ptr<std::byte> what) { landing_ = std::move(what); }
  void await_arrived() override;

 private:
  using payload = receive_phase::payload;

  int make() override;
  void prepare() override;
  int start() override;
  void cancel_started() override;

  // Returns the data of the current phase, which must be `Phase`.
  template <class Phase>
  [[nodiscard]] Phase& in() {
    return std::get<Phase>(phase_);
  }
  template <class Phase>
  void enter(Phase next) {
    HPE_INVARIANT(receive_phase::may_follow(phase_.index(), receive_phase::place_of<Phase>()));
    phase_ = std::move(next);
  }

  [[nodiscard]] int post(receive_phase::posted& what) const;
  void arrived(const MPI_Status& status, int code);
  [[nodiscard]] std::optional<envelope> find_envelope(const MPI_Status& status) const;
  [[nodiscard]] bool is_too_long(const MPI_Status& status) const;
  void put_in_place(const MPI_Status& status);
  void open_envelope(const envelope& head);
  void learn_sender(const envelope& head) const;
  [[nodiscard]] bool is_copied_unasked(const payload& what);

  void settle();
  [[nodiscard]] bool is_settled();
  void settled();
  void conclude_received();
  void fetch_unless_too_long();
  [[nodiscard]] bool look_at_unasked_copy();

  /// Whether the receiver may ask the sender to copy. The receiver asks at most once for each message.
  enum class asking : bool { no, yes };
  void fetch_payload(const payload& what, asking may_ask);
  [[nodiscard]] bool fetch_rows(asking may_ask);
  [[nodiscard]] bool fetch_directly(asking may_ask);
  [[nodiscard]] bool copy(const box_copy& shape, asking may_ask, const transfer_over& then);
  [[nodiscard]] bool ask_for_push(const box_copy& shape);
  [[nodiscard]] bool look_at_push();
  [[nodiscard]] static bool gives_up_push(const receive_phase::asked& now);
  [[nodiscard]] static bool sender_waits(const payload& what);
  void fetch_chunks(envelope_answer::verdict verdict = envelope_answer::verdict::chunks);
  static void tell_done(const payload& what);
  void fetched(const receive_phase::fetching& what, const std::optional<error>& failure);
  void conclude_payload(const std::optional<error>& failure);

  void scatter(const std::byte* from, std::size_t bytes);
  [[nodiscard]] std::shared_ptr<std::byte> borrow_gathered(std::size_t bytes) const;
  void scatter_gathered(std::byte* from, std::size_t bytes) const;
  [[nodiscard]] adopted_pointers* driver() const;

  // The program's arguments, and the memory into which MPI receives:
  receive what_;  // after make() has run, `type` is a duplicate of the program's datatype
  bool made_ = false;
  const layout which_;
  const std::optional<placed_box> rows_{which_.rows()};
  // Contiguous memory into which MPI receives if the buffer is smaller than an envelope, or if the buffer is memory of
  // the driver and has gaps. In memory with gaps, the envelope would be scattered, and each contiguous stretch could
  // cause a page fault.
  std::shared_ptr<std::byte> landing_;
  std::optional<staged_buffer> staged_;  // used for device memory if landing_ is not set

  // The state of the current start:
  receive_phase::any phase_;
  std::unique_ptr<advertisement_board::advertisement> advertised_;  // null when no sender can copy to the buffer
  std::optional<unadvertised_receive> unadvertised_;  // set while the receive is in progress and is not advertised
  // Identifies the device work that the program had queued before the current start (adopted_pointers.h).
  std::uint64_t queued_ = 0;
  MPI_Status status_{};  // the status for the program; valid after MPI has received the message or its envelope
};

}  // namespace hpe::interpose::mpi
