#pragma once

/// Collective calls on device memory among ranks of one machine. All ranks of a call decide together whether it goes as
/// messages from device to device (calls.h) or through MPI's own function.

#include <cstdint>
#include <memory>

#include "interpose/mpi/layout.h"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// The communicator for the messages of a group's calls, which returns errors. MPI makes it in the background. Thread
/// safe.
class near_channel {
 public:
  /// Collective over the ranks of a communicator; does not wait for them.
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

/// An intracommunicator whose ranks all run on this machine. MPI keeps it as an attribute of the communicator, and ends
/// it with that. Its functions are for the calling thread of a collective call, which is one at a time.
class near_group {
 public:
  /// The memory that a rank uses in a call, in the order of precedence. A vote tells which kinds the ranks use.
  enum class memory : std::uint8_t {
    ordinary = 1,
    device = 2,  ///< of the CUDA driver
    other = 4    ///< the call must go through MPI's own function: memory of hpe, or a buffer that cannot be used
  };
  /// Which ranks must use device memory for a call to go as messages, if none uses other memory.
  enum class needed : std::uint8_t { one, all };

  /// nullptr if ranks of comm run on other machines, or direct copies are off: in all ranks or none.
  [[nodiscard]] static near_group* of(MPI_Comm comm);
  /// The same for non-blocking calls, which cannot vote: nullptr also if a rank of the job cannot use CUDA.
  [[nodiscard]] static near_group* of_background(MPI_Comm comm);

  near_group(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}
  ~near_group() = default;
  near_group(const near_group&) = delete;
  near_group& operator=(const near_group&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  /// Whether the ranks vote on this call; all of them get the same answer, without communication. While no rank has
  /// used device memory, they vote on few calls.
  [[nodiscard]] bool votes() noexcept;
  /// A vote: collective. Returns the same in all ranks.
  [[nodiscard]] bool agree(memory mine, needed ranks);

  /// The calling rank among the ranks of one call, and the way of the call's messages.
  struct ranks_of_call {
    int rank = 0;
    int size = 0;
    std::shared_ptr<near_channel> channel;
    int tag = 0;
  };
  /// For a blocking call: waits until the channel is ready.
  [[nodiscard]] ranks_of_call now();
  /// For a non-blocking call, which has a tag of its own: messages of other calls may go at the same time.
  [[nodiscard]] ranks_of_call next();

  /// The memory of a buffer argument.
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
