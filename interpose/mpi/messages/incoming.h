#pragma once

/// A receive that may match an envelope. MPI receives either the message itself or an envelope; after an envelope, hpe
/// fetches the payload. If the buffer is smaller than an envelope, MPI receives into hpe's own memory. hpe then
/// determines whether the message is too long, and informs its sender.

#include <memory>
#include <optional>
#include <utility>

#include "interpose/mpi/messages/board/announcements.h"
#include "interpose/mpi/messages/channel.h"
#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/message.h"
#include "interpose/mpi/messages/receive_phases.h"
#include "interpose/mpi/messages/set_aside.h"
#include "interpose/mpi/messages/transfer/chunks.h"
#include "interpose/mpi/messages/unannounced_receives.h"
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

/// Announces a receive to its sender before the receive is posted to MPI, if that may make the message faster. Must be
/// called while a progress::guard exists.
[[nodiscard]] std::unique_ptr<announcement_board::announcement> announce(const receive& what, const layout& which);

class incoming final : public message {
 public:
  incoming(const receive& what, bool persistent);
  /// Makes a blocking receive, which the caller then posts to MPI with the buffer where().
  incoming(const receive& what, std::unique_ptr<announcement_board::announcement> announced);
  ~incoming() override;

  /// Sets the message to receive, which MPI has already matched.
  void found(const matched& what) { in<receive_phase::ready>().found = what; }

  /// The buffer arguments for a receive that MPI makes.
  struct slot {
    void* place;
    int count;
    MPI_Datatype type;
  };

  /// For a blocking call that uses MPI's own receive. where() returns the buffer arguments for that receive. After the
  /// receive, is_left() returns whether MPI has received an envelope or too many bytes, so that carry_out() must be
  /// called; otherwise the message is in the program's buffer.
  [[nodiscard]] slot where() const noexcept;
  [[nodiscard]] bool is_left(const MPI_Status& status);
  /// To be called if MPI has received nothing: waits until no sender is copying to the buffer. Must be called without a
  /// guard.
  void await_settled();
  /// Sets the memory into which MPI has received instead of where(), because the buffer is smaller than an envelope.
  void landed(std::shared_ptr<std::byte> what) { landing_ = std::move(what); }

 private:
  using payload = receive_phase::payload;

  int make() override;
  void prepare() override;
  int start() override;
  void cancel() override;

  // The data of the current phase, which must be `Phase`.
  template <class Phase>
  [[nodiscard]] Phase& in() {
    return std::get<Phase>(phase_);
  }
  template <class Phase>
  void enter(Phase&& next) {
    HPE_INVARIANT(receive_phase::may_follow(phase_.index(), receive_phase::place_of<Phase>()));
    phase_ = std::forward<Phase>(next);
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

  /// Whether the sender may be asked to copy, which it is only once.
  enum class asking : bool { no, yes };
  void fetch_payload(const payload& what, asking may_ask);
  [[nodiscard]] bool fetch_rows(asking may_ask);
  [[nodiscard]] bool fetch_directly(asking may_ask);
  [[nodiscard]] bool copy(const box_copy& shape, asking may_ask, const transfer_over& then);
  [[nodiscard]] bool ask_for_push(const box_copy& shape);
  [[nodiscard]] bool look_at_push();
  [[nodiscard]] static bool gives_up_push(const receive_phase::asked& now);
  [[nodiscard]] static bool sender_waits(const payload& what);
  void fetch_chunks(answer::verdict verdict = answer::verdict::chunks);
  static void tell_done(const payload& what);
  void fetched(const receive_phase::fetching& what, const std::optional<error>& failure);
  void conclude_payload(const std::optional<error>& failure);

  void scatter(const std::byte* from, std::size_t bytes);
  [[nodiscard]] std::shared_ptr<std::byte> borrow_gathered(std::size_t bytes) const;
  void scatter_gathered(std::byte* from, std::size_t bytes) const;
  [[nodiscard]] adopted_pointers* driver() const;

  // The arguments of the program, and the memory for MPI's own receive.
  receive what_;  // after make() has run, `type` is a duplicate of the program's datatype
  bool made_ = false;
  const layout which_;
  const std::optional<placed_box> rows_{which_.rows()};
  // Contiguous memory into which MPI receives if the buffer is smaller than an envelope. Also used if the buffer is
  // memory of the driver with gaps: the stretches of this memory may be so far apart that an envelope would cause a
  // page fault in each of them.
  std::shared_ptr<std::byte> landing_;
  std::optional<staged_buffer> staged_;  // used for device memory if landing_ is not set

  // The current start.
  receive_phase::any phase_;
  std::unique_ptr<announcement_board::announcement> announced_;  // until no sender copies for it
  std::optional<unannounced_receive> unannounced_;               // in place of announced_
  std::uint64_t queued_ = 0;  // identifies work that the program queued before the current start (adopted_pointers.h)
  MPI_Status status_{};       // for the program, once MPI has received something
};

}  // namespace hpe::interpose::mpi
