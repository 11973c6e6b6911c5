#pragma once

/// Collective calls on device memory, among ranks that all run on one machine. All ranks of a call decide together
/// whether it uses messages between devices (calls.h) or MPI's own function.

#include <cstdint>
#include <memory>

#include "interpose/mpi/layout.h"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// A communicator for the messages of a group's collective calls; its error handler is MPI_ERRORS_RETURN. MPI creates
/// the communicator in the background. Thread safe.
class near_channel {
 public:
  /// Collective over the ranks of communicator `of`; does not wait for the other ranks.
  explicit near_channel(MPI_Comm of);
  ~near_channel();
  near_channel(const near_channel&) = delete;
  near_channel& operator=(const near_channel&) = delete;

  [[nodiscard]] bool ready();
  [[nodiscard]] MPI_Comm comm() const noexcept { return comm_; }

 private:
  MPI_Comm comm_{};
  MPI_Request made_{};
  bool ready_ = false;
};

/// An intracommunicator whose ranks all run on this machine. The object is stored as an attribute of the communicator,
/// and MPI destroys it together with the communicator. Only the thread that makes a collective call may use the
/// object's functions; a communicator has only one collective call at a time.
class near_group {
 public:
  /// The kind of memory that a rank uses in a call; a higher value takes precedence. In a vote, all ranks learn which
  /// kinds of memory the other ranks use.
  enum class memory : std::uint8_t {
    ordinary = 1,
    device = 2,  ///< memory of the CUDA driver
    other = 4    ///< hpe memory, or a buffer that cannot be used; the ranks must call MPI's own function
  };
  /// Whether a call uses messages if at least one rank uses device memory, or only if all ranks do. If any rank uses
  /// `other` memory, the call uses no messages.
  enum class needed : std::uint8_t { one, all };

  /// The group of a communicator. Returns nullptr, in all ranks, if some of the communicator's ranks run on other
  /// machines, or if direct copies are off.
  [[nodiscard]] static near_group* of(MPI_Comm comm);
  /// Like of(), for non-blocking calls, in which the ranks cannot vote. Also returns nullptr if a rank of the job
  /// cannot use CUDA, or if the communicator has more than 8 ranks.
  [[nodiscard]] static near_group* of_background(MPI_Comm comm);

  near_group(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}
  ~near_group() = default;
  near_group(const near_group&) = delete;
  near_group& operator=(const near_group&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  /// Whether the ranks vote on this call. All ranks get the same answer, without communication. Until a vote has shown
  /// that a rank uses device memory, the ranks vote only on a few calls.
  [[nodiscard]] bool votes() noexcept;
  /// Makes the ranks vote; collective over the ranks. Returns whether the call uses messages; the result is the same in
  /// all ranks.
  [[nodiscard]] bool agree(memory mine, needed ranks);

  /// The rank of the calling process in one collective call, with the channel and tag of the call's messages.
  struct ranks_of_call {
    int rank = 0;
    int size = 0;
    std::shared_ptr<near_channel> channel;
    int tag = 0;
  };
  /// For a blocking call: waits until the channel is ready.
  [[nodiscard]] ranks_of_call now();
  /// For a non-blocking call. Each call has its own tag, because messages of several calls may be in progress at the
  /// same time.
  [[nodiscard]] ranks_of_call next();

  /// The kind of memory of a buffer argument.
  [[nodiscard]] static memory memory_of(const void* buffer, const layout& which);

 private:
  [[nodiscard]] const std::shared_ptr<near_channel>& channel();

  const MPI_Comm comm_;
  const int rank_;
  const int size_;
  std::shared_ptr<near_channel> channel_;
  std::uint64_t calls_ = 0;
  std::uint32_t background_calls_ = 0;
  bool device_seen_ = false;
};

}  // namespace hpe::interpose::mpi
