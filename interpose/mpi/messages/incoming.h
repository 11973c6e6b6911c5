#pragma once

/// A receive that may bring an envelope. MPI receives the message itself, or the envelope in its place, and then the
/// payload is fetched. Where there is no room for an envelope MPI receives in memory of ours: that the message is too
/// long is found here, and its sender is told.

#include <memory>
#include <optional>

#include "interpose/mpi/messages/channel.h"
#include "interpose/mpi/messages/chunks.h"
#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/message.h"
#include "interpose/mpi/messages/set_aside.h"
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

class incoming final : public message {
 public:
  incoming(const receive& what, bool persistent);
  ~incoming() override;

  /// It has been matched already.
  void found(const matched& what) { found_ = what; }

  /// Where MPI receives.
  struct slot {
    void* place;
    int count;
    MPI_Datatype type;
  };

  /// For a blocking call, in which MPI receives by itself: where, and then whether carry_out is to go on, because it
  /// received an envelope or too much; else all is in place.
  [[nodiscard]] slot where() const noexcept;
  [[nodiscard]] bool is_left(const MPI_Status& status);
  /// MPI has received there instead; where there is no room for an envelope.
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
  void fetch_payload();
  [[nodiscard]] bool fetch_directly(std::byte* to);
  [[nodiscard]] bool fetch_rows();
  [[nodiscard]] bool copy(std::byte* to, const copied_rows& shape, const transfer_over& then);
  [[nodiscard]] bool ask_for_push(std::byte* to, const copied_rows& shape);
  [[nodiscard]] bool look_at_push(adopted_pointers& devices, const std::byte* to, std::size_t bytes);
  void fetch_chunks(std::byte* to, answer::verdict verdict = answer::verdict::chunks);
  void tell_done() const;
  void fetched(const std::optional<error>& failure);
  void scatter(const std::byte* from, std::size_t bytes);
  [[nodiscard]] adopted_pointers* driver() const;

  receive what_;  // of a persistent one that was made, with a type of its own
  bool made_ = false;
  const layout which_;
  const std::optional<byte_rows> rows_{which_.rows()};
  // Bytes in a row: where there is no room for an envelope, or of memory of the driver with gaps, whose stretches may
  // lie so far apart that an envelope would meet a page fault in each.
  std::shared_ptr<std::byte> landing_;
  std::optional<staged_buffer> staged_;  // else, for memory of devices
  MPI_Request request_ = nullptr;        // of this start
  std::optional<matched> found_;         // instead of a message that MPI matches
  std::optional<envelope> head_;         // of what is being fetched
  bool taken_ = false;                   // its offer
  bool left_ = false;                    // by a sender that was to copy
  std::uint64_t queued_ = 0;             // work of the program before this start (adopted_pointers.h)
  bool too_long_ = false;                // what a blocking call received
  MPI_Status status_{};
  std::unique_ptr<std::byte[]> assembled_;  // where the layout has gaps
};

}  // namespace hpe::interpose::mpi
