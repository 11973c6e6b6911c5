#pragma once

/// What the ranks of a job have agreed on in MPI_Init: whether they send large messages of device memory by the
/// protocol of this folder, and with which settings. Either all ranks load libhpe-mpi.so before their MPI, or none.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

struct job {
  /// A random number, so long that no payload contains it by accident.
  using number = std::array<std::uint64_t, 2>;

  number id{};
  /// hpe's own communicator; its ranks are those of MPI_COMM_WORLD.
  MPI_Comm channel{};
  MPI_Comm self{};  ///< hpe's own communicator of this process alone
  int rank = 0;
  bool all_use_cuda = false;     ///< hpe stands before the CUDA driver in all ranks (hpe run)
  bool several_threads = false;  ///< several threads may call MPI at once (MPI_THREAD_MULTIPLE)
  /// By rank in MPI_COMM_WORLD: whether it runs on this machine.
  std::vector<bool> same_machine;
  std::size_t large = 0;   ///< least bytes of a message that goes by the protocol
  std::size_t direct = 0;  ///< least bytes of a message to a rank of this machine; 0: no direct copies
  std::size_t chunk = 0;   ///< the most bytes of a chunk

  /// Whether a rank is on this machine and direct copies are on.
  [[nodiscard]] bool is_near(int other) const { return direct != 0 && same_machine[static_cast<std::size_t>(other)]; }
  /// The least bytes of a message to a rank that goes by the protocol.
  [[nodiscard]] std::size_t least(int other) const { return is_near(other) ? std::min(direct, large) : large; }

  /// The running job; nullptr before MPI_Init, after MPI_Finalize, and if the ranks did not agree. Costs one load.
  [[nodiscard]] static const job* current() noexcept;

  /// Every rank calls it in MPI_Init: collective. It has no effect with HPE_MPI_PIPELINE=off.
  static void begin();
  /// Called before MPI_Finalize: waits for the transfers in progress that other ranks wait for.
  static void end();

  /// Records that the program has set an error handler, so it may continue after a receive that was too short.
  static void set_survives_errors() noexcept;
  [[nodiscard]] static bool survives_errors() noexcept;

  /// The rank in MPI_COMM_WORLD of a member of an intracommunicator; MPI_UNDEFINED for processes of other jobs.
  [[nodiscard]] static int world_rank(MPI_Comm comm, int member);
};

}  // namespace hpe::interpose::mpi
