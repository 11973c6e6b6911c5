#pragma once

/// Transfers of a payload from one process to another in chunks, so that the devices copy some chunks while the network
/// carries others. Each side has a few chunks in host memory at a time. The payload may be memory of hpe or any other;
/// the caller must leave it alone until the transfer is over.

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "hpe/error.hpp"
#include "interpose/buffer_access.h"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// The chunks of a payload, and the rank and tag of their messages.
struct chunk_plan {
  std::size_t bytes = 0;  ///< not 0
  std::size_t chunk = 0;
  int rank = 0;  ///< the other side's rank in MPI_COMM_WORLD
  int tag = 0;

  [[nodiscard]] std::size_t count() const noexcept { return (bytes + chunk - 1) / chunk; }
  [[nodiscard]] std::size_t offset(std::size_t i) const noexcept { return i * chunk; }
  [[nodiscard]] std::size_t size(std::size_t i) const noexcept { return std::min(chunk, bytes - offset(i)); }

  static constexpr std::size_t at_once = 8;

  /// The chunk size for a message of `bytes` bytes: several chunks, none of them too small, none above `most`.
  [[nodiscard]] static std::size_t chunk_for(std::size_t bytes, std::size_t most);
};

/// Called once, under progress::guard, when the program may use its buffer again; with an error if the transfer failed.
/// After a failure, a sender sends empty chunks and a receiver discards chunks, so that the other side finishes too.
using transfer_over = std::function<void(const std::optional<error>& failure)>;

/// The first failure of an operation of several steps. Later failures are consequences of it and are dropped.
class first_failure {
 public:
  explicit first_failure(std::optional<error> earlier = std::nullopt) : what_(std::move(earlier)) {}

  template <class Action>
  void attempt(Action&& action) {
    try {
      action();
    } catch (const error& e) {
      if (!what_) what_ = e;
    }
  }

  [[nodiscard]] bool any() const noexcept { return what_.has_value(); }
  [[nodiscard]] const std::optional<error>& what() const noexcept { return what_; }

 private:
  std::optional<error> what_;
};

/// Both start a transfer and return at once. Call them under progress::guard.
void send_in_chunks(const std::byte* from, const chunk_plan& plan, transfer_over then);
void receive_in_chunks(std::byte* to, const chunk_plan& plan, transfer_over then);

}  // namespace hpe::interpose::mpi
