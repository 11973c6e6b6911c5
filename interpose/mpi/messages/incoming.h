#pragma once

/// A receive that may bring an envelope: any that has room for one. MPI receives the message itself, or the envelope in
/// its place, and then the payload is fetched.

#include <memory>
#include <optional>

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

  /// For a blocking call, in which MPI receives by itself: where, and then whether what it received was an envelope
  /// (carry_out goes on with it then) or has been put in place.
  [[nodiscard]] void* place() const noexcept;
  [[nodiscard]] bool was_envelope(const MPI_Status& status);

 private:
  int make() override;
  void prepare() override;
  int start() override;
  void cancel() override;
  int post();
  void arrived(const MPI_Status& status, int code);
  [[nodiscard]] std::optional<envelope> find_envelope(const MPI_Status& status) const;
  void fetch(const envelope& head);
  void fetch_chunks(std::byte* to);
  void fetched(const std::optional<error>& failure);
  void scatter();

  receive what_;
  const layout which_;
  std::optional<staged_buffer> staged_;  // for memory of hpe
  MPI_Request persistent_request_ = nullptr;
  MPI_Request request_ = nullptr;  // of this start
  std::optional<matched> found_;   // instead of a message that MPI matches
  std::optional<envelope> head_;   // of what is being fetched
  MPI_Status status_{};
  std::unique_ptr<std::byte[]> assembled_;  // where the layout has gaps
};

}  // namespace hpe::interpose::mpi
