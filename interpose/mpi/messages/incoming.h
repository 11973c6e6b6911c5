#pragma once

/// A receive that may bring an envelope: any that has room for one. MPI receives the message itself, or the envelope in
/// its place, and then the payload is fetched.

#include <memory>
#include <optional>

#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/message.h"
#include "interpose/mpi/staged_buffer.h"

namespace hpe::interpose::mpi {

class incoming final : public message {
 public:
  /// Posts the receive of MPI at an address with room for the layout.
  using post = std::function<int(void* place, MPI_Request* request)>;

  /// Persistent: post makes a persistent request.
  incoming(void* buffer, layout which, MPI_Comm comm, post how, bool persistent);
  ~incoming() override;

  /// For a blocking call, in which MPI receives by itself: where, and then whether what it received was an envelope
  /// (carry_out goes on with it then) or has been put in place.
  [[nodiscard]] void* place() const noexcept;
  [[nodiscard]] bool was_envelope(const MPI_Status& status);

 private:
  int make() override;
  void prepare() override;
  int start() override;
  void cancel() override;
  void arrived(const MPI_Status& status, int code);
  [[nodiscard]] std::optional<envelope> find_envelope(const MPI_Status& status) const;
  void fetch(const envelope& head);
  void fetched(const std::optional<error>& failure);
  void scatter();

  void* const buffer_;
  const layout which_;
  const post post_;
  std::optional<staged_buffer> staged_;  // for memory of hpe
  MPI_Request request_ = nullptr;
  std::optional<envelope> head_;
  MPI_Status status_{};
  std::unique_ptr<std::byte[]> assembled_;  // where the layout has gaps
};

}  // namespace hpe::interpose::mpi
