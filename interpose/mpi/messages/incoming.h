#pragma once

/// A receive that may match an envelope. MPI receives the message itself, or an envelope; then hpe fetches the payload.
/// If the buffer has less room than an envelope, MPI receives into hpe's memory: hpe then finds out whether the message
/// is too long, and tells its sender.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "interpose/mpi/messages/board/announcements.h"
#include "interpose/mpi/messages/channel.h"
#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/message.h"
#include "interpose/mpi/messages/set_aside.h"
#include "interpose/mpi/messages/transfer/chunks.h"
#include "interpose/mpi/staged_buffer.h"

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

/// Announces a receive that is about to be posted to MPI to its sender, if that may help. Call it under
/// progress::guard.
[[nodiscard]] std::unique_ptr<announcement_board::announcement> announce(const receive& what, const layout& which);

class incoming final : public message {
 public:
  incoming(const receive& what, bool persistent);
  /// The blocking receive of `what`, which is to be posted to MPI next, into where().
  incoming(const receive& what, std::unique_ptr<announcement_board::announcement> announced);
  ~incoming() override;

  /// Makes this the receive of a message that MPI has already matched.
  void found(const matched& what) { found_ = what; }

  /// The buffer arguments that MPI's own receive gets.
  struct slot {
    void* place;
    int count;
    MPI_Datatype type;
  };

  /// For a blocking call of MPI's own receive. where() returns its buffer. is_left() then returns whether carry_out()
  /// must follow, because MPI received an envelope or too many bytes; if not, the message is in the program's buffer.
  [[nodiscard]] slot where() const noexcept;
  [[nodiscard]] bool is_left(const MPI_Status& status);
  /// Waits until no sender copies to the buffer, if MPI has received nothing. Call it without a guard.
  void await_settled();
  /// MPI has received into `what` instead of where(), because the buffer has less room than an envelope.
  void landed(std::shared_ptr<std::byte> what) { landing_ = std::move(what); }

 private:
  int make() override;
  void prepare() override;
  int start() override;
  void cancel() override;
  int post();
  void arrived(const MPI_Status& status, int code);
  [[nodiscard]] std::optional<envelope> find_envelope(const MPI_Status& status) const;
  [[nodiscard]] bool is_too_long(const MPI_Status& status) const;
  void put_in_place(const MPI_Status& status);
  void fetch(const envelope& head);
  void learn_sender();
  void fetch_unless_too_long();
  void conclude_arrived(int code, bool cancelled);
  [[nodiscard]] bool is_copied_unasked();
  void settle(const std::function<void()>& then);
  [[nodiscard]] bool is_settled();
  [[nodiscard]] bool look_at_unasked_copy();
  void fetch_payload();
  [[nodiscard]] bool fetch_directly(std::byte* to);
  [[nodiscard]] bool fetch_rows();
  [[nodiscard]] bool copy(std::byte* to, const copied_rows& shape, const transfer_over& then);
  [[nodiscard]] bool ask_for_push(std::byte* to, const copied_rows& shape);
  [[nodiscard]] bool look_at_push(adopted_pointers& devices, const std::byte* to, std::size_t bytes);
  [[nodiscard]] bool gives_up_push() const;
  [[nodiscard]] bool sender_waits() const;
  void fetch_chunks(std::byte* to, answer::verdict verdict = answer::verdict::chunks);
  void tell_done() const;
  void fetched(const std::optional<error>& failure);
  void scatter(const std::byte* from, std::size_t bytes);
  void borrow_gathered(std::size_t bytes);
  void scatter_gathered(std::size_t bytes);
  [[nodiscard]] adopted_pointers* driver() const;

  receive what_;  // once make() has run, with a duplicate of the program's datatype
  bool made_ = false;
  const layout which_;
  const std::optional<byte_rows> rows_{which_.rows()};
  // Contiguous memory in which MPI receives if the buffer has less room than an envelope, or if it is memory of the
  // driver with gaps: its stretches may lie so far apart that an envelope would cause a page fault in each.
  std::shared_ptr<std::byte> landing_;
  std::optional<staged_buffer> staged_;  // for device memory without landing_
  MPI_Request request_{};                // MPI's own receive of this start
  std::optional<matched> found_;         // already matched message to receive
  std::unique_ptr<announcement_board::announcement> announced_;
  std::optional<envelope> head_;  // envelope of the payload that is being fetched
  bool taken_ = false;            // this receive has taken the offer in head_
  bool left_ = false;             // the sender was asked to copy, and this side copies nevertheless
  std::chrono::steady_clock::time_point patient_until_;  // for a sender that was asked and need not be in MPI
  std::uint64_t queued_ = 0;  // names the program's work before this start (adopted_pointers.h)
  bool too_long_ = false;     // a blocking call received too many bytes
  MPI_Status status_{};
  std::unique_ptr<std::byte[]> assembled_;  // contiguous payload, if the layout has gaps
  std::shared_ptr<std::byte> gathered_;     // the same in device memory of hpe
};

}  // namespace hpe::interpose::mpi
