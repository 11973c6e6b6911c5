#pragma once

/// Support for collective calls among ranks that all run on one machine. All ranks of a call decide together whether
/// the call uses messages between devices (calls.h) or MPI's own function.

#include <cstdint>
#include <memory>

#include "interpose/mpi/layout.h"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// hpe's own communicator for the messages of a group's collective calls. Its error handler is MPI_ERRORS_RETURN. MPI
/// creates the communicator in the background (MPI_Comm_idup). Thread safe.
class near_channel {
 public:
  /// Begins to create the communicator, with the ranks of `of`. Collective over these ranks, but does not wait for
  /// them.
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

/// An intracommunicator whose ranks all run on this machine. The object is stored as an attribute of the communicator
/// and is destroyed with the communicator. Only a thread in a collective call on the communicator may use the object's
/// functions; MPI allows only one such call at a time.
class near_group {
 public:
  /// The kind of memory that a rank uses in a call. A rank that uses several kinds has the highest of their values. A
  /// vote returns the bitwise or of all ranks' values.
  enum class memory : std::uint8_t {
    ordinary = 1,
    device = 2,  ///< memory of the CUDA driver
    other = 4    ///< hpe memory, or a buffer that cannot be used; the ranks must call MPI's own function
  };
  /// How many ranks must use device memory so that a call uses messages: at least one, or all. If any rank uses `other`
  /// memory, the call uses no messages.
  enum class needed : std::uint8_t { one, all };

  /// Returns the group of a communicator; nullptr, in all ranks, for an intercommunicator or a single rank, if some of
  /// the communicator's ranks run on other machines, or if direct copies are off or impossible.
  [[nodiscard]] static near_group* of(MPI_Comm comm);
  /// Like of(), for non-blocking calls, in which the ranks cannot vote. Also returns nullptr if hpe does not intercept
  /// CUDA in all ranks of the job (hpe run), or if the communicator has more than 8 ranks.
  [[nodiscard]] static near_group* of_background(MPI_Comm comm);

  near_group(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}
  ~near_group() = default;
  near_group(const near_group&) = delete;
  near_group& operator=(const near_group&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  /// Returns whether the ranks must vote on this call. The result is the same in all ranks, without communication.
  /// Until a vote has shown that a rank uses device memory, the ranks vote only on a few calls.
  [[nodiscard]] bool votes() noexcept;
  /// Votes, and waits for the votes of all ranks. `mine`: the memory that this rank uses. Returns whether the call uses
  /// messages; the result is the same in all ranks. Collective over the group.
  [[nodiscard]] bool agree(memory mine, needed ranks);

  /// The calling process's rank in one collective call, the number of ranks, and the channel and tag of the call's
  /// messages.
  struct ranks_of_call {
    int rank = 0;
    int size = 0;
    std::shared_ptr<near_channel> channel;
    int tag = 0;
  };
  /// Returns the values for a blocking call. Waits until the channel is ready.
  [[nodiscard]] ranks_of_call now();
  /// Returns the values for a non-blocking call. Each call has its own tag, because messages of several calls may be in
  /// progress at the same time.
  [[nodiscard]] ranks_of_call next();

  /// Returns the kind of memory of a buffer argument with the layout `which`.
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
