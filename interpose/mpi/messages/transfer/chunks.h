#pragma once

/// Transfers a payload from one process to another in chunks, so that devices copy some chunks while the network
/// transfers others. At any time, each of the two processes has at most at_once chunks of a payload in host buffers.
/// The payload may be in hpe memory or in any other memory. The caller must not use this memory until the transfer has
/// ended.

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>

#include "hpe/error.hpp"
#include "interpose/buffer_access.h"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// The chunks of a payload, with the rank and the tag for their messages.
struct chunk_plan {
  std::size_t bytes = 0;  ///< the number of bytes of the payload; must not be 0
  std::size_t chunk = 0;
  int rank = 0;  ///< the rank of the other process in MPI_COMM_WORLD
  int tag = 0;

  [[nodiscard]] std::size_t count() const noexcept { return (bytes + chunk - 1) / chunk; }
  [[nodiscard]] std::size_t offset(std::size_t i) const noexcept { return i * chunk; }
  [[nodiscard]] std::size_t size(std::size_t i) const noexcept { return std::min(chunk, bytes - offset(i)); }

  static constexpr std::size_t at_once = 8;

  /// Returns the chunk size in bytes for a message of `bytes` bytes: small enough that a long message has several
  /// chunks, large enough that chunks are transferred at full speed, and at most `most`.
  [[nodiscard]] static std::size_t chunk_for(std::size_t bytes, std::size_t most);
};

/// A function that is called once, when the transfer has ended and the program may use its buffer again. The caller
/// holds a progress::guard. `failure` is set if the transfer failed. After a failure, a sender sends empty chunks and a
/// receiver discards chunks, so that the transfer also ends in the other process.
using transfer_over = std::function<void(const std::optional<error>& failure)>;

/// Keeps the first failure of an operation that has several steps. Later failures follow from the first one and are
/// discarded.
class first_failure {
 public:
  explicit first_failure(std::optional<error> earlier = std::nullopt) : what_(std::move(earlier)) {}

  template <class Action>
  void attempt(Action&& action) {
    try {
      action();
    } catch (const error& e) {
      if (!what_) what_ = e;
    } catch (const std::bad_alloc&) {
      if (!what_) what_ = prepared_;
    }
  }

  [[nodiscard]] bool any() const noexcept { return what_.has_value(); }
  [[nodiscard]] const std::optional<error>& what() const noexcept { return what_; }

 private:
  // Creates the error while host memory is available. Copies of the error allocate no memory.
  static const error& no_memory() {
    static const error& made = *new error(HPE_ERROR_OUT_OF_MEMORY, "the host has no memory left for a message");
    return made;
  }

  const error& prepared_ = no_memory();
  std::optional<error> what_;
};

/// Both functions start a transfer and return at once. `then` is called when the transfer has ended. The caller must
/// hold a progress::guard.
void send_in_chunks(const std::byte* from, const chunk_plan& plan, transfer_over then);
void receive_in_chunks(std::byte* to, const chunk_plan& plan, transfer_over then);

}  // namespace hpe::interpose::mpi
