#pragma once

/// Collective calls on device memory among ranks of one machine. All ranks of a call decide together whether it goes as
/// messages from device to device (calls.h) or through MPI's own function.

#include <cstdint>

#include "interpose/mpi/layout.h"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

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

  near_group(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}
  ~near_group();
  near_group(const near_group&) = delete;
  near_group& operator=(const near_group&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  /// Whether the ranks vote on this call; all of them get the same answer, without communication. While no rank has
  /// used device memory, they vote on few calls.
  [[nodiscard]] bool votes() noexcept;
  /// A vote: collective. Returns the same in all ranks.
  [[nodiscard]] bool agree(memory mine, needed ranks);

  /// The communicator for the messages of calls, which returns errors. Collective at the first call.
  [[nodiscard]] MPI_Comm channel();

  /// The memory of a buffer argument.
  [[nodiscard]] static memory memory_of(const void* buffer, const layout& which);

 private:
  const MPI_Comm comm_;
  const int rank_;
  const int size_;
  MPI_Comm channel_{};
  std::uint64_t calls_ = 0;
  bool device_seen_ = false;
};

}  // namespace hpe::interpose::mpi
