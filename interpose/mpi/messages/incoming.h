#pragma once

/// A receive that may match an envelope. MPI receives either the message itself or an envelope; after an envelope, hpe
/// fetches the payload. If the buffer is smaller than an envelope, MPI receives into hpe's own memory. hpe then
/// determines whether the message is too long, and informs its sender.

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
  void found(const matched& what) { found_ = what; }

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
  [[nodiscard]] bool copy(std::byte* to, const box_copy& shape, const transfer_over& then);
  [[nodiscard]] bool ask_for_push(std::byte* to, const box_copy& shape);
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

  receive what_;  // after make() has run, `type` is a duplicate of the program's datatype
  bool made_ = false;
  const layout which_;
  const std::optional<placed_box> rows_{which_.rows()};
  // Contiguous memory into which MPI receives if the buffer is smaller than an envelope. Also used if the buffer is
  // memory of the driver with gaps: the stretches of this memory may be so far apart that an envelope would cause a
  // page fault in each of them.
  std::shared_ptr<std::byte> landing_;
  std::optional<staged_buffer> staged_;  // used for device memory if landing_ is not set
  MPI_Request request_{};                // MPI's own receive for the current start
  std::optional<matched> found_;         // the message to receive, if it is already matched
  std::unique_ptr<announcement_board::announcement> announced_;
  std::optional<envelope> head_;  // the envelope of the payload that is being fetched
  bool taken_ = false;            // whether this receive has taken the offer in head_
  bool left_ = false;             // whether this side copies, although it asked the sender to copy
  std::chrono::steady_clock::time_point patient_until_;  // the end of the wait for a sender that was asked to copy
  std::uint64_t queued_ = 0;  // identifies work that the program queued before the current start (adopted_pointers.h)
  bool too_long_ = false;     // whether a blocking call has received too many bytes
  MPI_Status status_{};
  std::unique_ptr<std::byte[]> assembled_;  // the contiguous payload, if the layout has gaps
  std::shared_ptr<std::byte> gathered_;     // the contiguous payload in hpe's device memory
};

}  // namespace hpe::interpose::mpi
