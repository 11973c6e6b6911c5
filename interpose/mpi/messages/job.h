#pragma once

/// The agreement of a job's ranks in MPI_Init: whether they send large messages of device memory by the protocol of
/// this folder, and with which settings. Either all ranks must load libhpe-mpi.so before their MPI library, or no rank.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

struct job {
  /// A random number. It is so long that no payload contains it by chance.
  using number = std::array<std::uint64_t, 2>;

  number id{};
  /// hpe's own communicator; it has the same ranks as MPI_COMM_WORLD.
  MPI_Comm channel{};
  MPI_Comm self{};  ///< hpe's own communicator that contains only this process
  int rank = 0;
  bool all_use_cuda = false;     ///< whether hpe is loaded before the CUDA driver in all ranks (hpe run)
  bool several_threads = false;  ///< whether several threads may call MPI at once (MPI_THREAD_MULTIPLE)
  /// For each rank in MPI_COMM_WORLD: whether it runs on this machine.
  std::vector<bool> same_machine;
  std::size_t large = 0;   ///< messages of at least this many bytes use the protocol
  std::size_t direct = 0;  ///< like `large`, for messages to ranks of this machine; 0: direct copies are off
  std::size_t chunk = 0;   ///< largest number of bytes of a chunk

  /// Whether a rank runs on this machine and direct copies are on.
  [[nodiscard]] bool is_near(int other) const { return direct != 0 && same_machine[static_cast<std::size_t>(other)]; }
  /// The smallest size in bytes of messages to a rank that use the protocol.
  [[nodiscard]] std::size_t least(int other) const { return is_near(other) ? std::min(direct, large) : large; }

  /// The running job; nullptr before MPI_Init and after MPI_Finalize, and if the ranks do not use the protocol. Costs
  /// one load.
  [[nodiscard]] static const job* current() noexcept;

  /// Called by every rank in MPI_Init; collective. With HPE_MPI_PIPELINE=off it has no effect.
  static void begin();
  /// Called before MPI_Finalize: waits for the transfers in progress for which other ranks wait.
  static void end();

  /// Records that the program has set an error handler, so that it may continue after a message that was too long for
  /// its receive.
  static void set_survives_errors() noexcept;
  [[nodiscard]] static bool survives_errors() noexcept;

  /// Converts a rank of an intracommunicator to the rank in MPI_COMM_WORLD; MPI_UNDEFINED for processes of other jobs.
  [[nodiscard]] static int world_rank(MPI_Comm comm, int member);
};

}  // namespace hpe::interpose::mpi
