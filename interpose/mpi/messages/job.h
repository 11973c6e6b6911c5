#pragma once

/// In MPI_Init, all ranks of a job agree whether they use the protocol of this folder for large messages of device
/// memory, and with which settings. This struct contains the result. The protocol is the exchange of envelopes, answers
/// and payloads (envelope.h). Either all ranks or no rank must load libhpe-mpi.so before their MPI library.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

struct job {
  /// A random number, which is the same in all ranks. Two 64-bit words are so long that no payload contains the number
  /// by chance.
  using number = std::array<std::uint64_t, 2>;

  number id{};
  /// hpe's own communicator; it has the same ranks as MPI_COMM_WORLD.
  MPI_Comm channel{};
  MPI_Comm self{};  ///< hpe's own communicator that contains only this process
  int rank = 0;
  bool all_use_cuda = false;  ///< whether hpe intercepts the calls of the CUDA driver in all ranks (hpe run)
  /// Whether several threads of the program may call MPI at once (MPI_THREAD_MULTIPLE).
  bool several_threads = false;
  /// For each rank in MPI_COMM_WORLD: whether it runs on this machine.
  std::vector<bool> same_machine;
  std::size_t large = 0;  ///< the smallest number of bytes of messages to ranks of other machines that use the protocol
  /// The same limit for messages to ranks of this machine; 0: hpe does not copy from device to device.
  std::size_t direct = 0;
  std::size_t chunk = 0;  ///< the largest number of bytes of a chunk

  /// Whether a rank runs on this machine and direct copies are on.
  [[nodiscard]] bool is_near(int other) const { return direct != 0 && same_machine[static_cast<std::size_t>(other)]; }
  /// Returns the smallest number of bytes of messages to rank `other` that use the protocol.
  [[nodiscard]] std::size_t least(int other) const { return is_near(other) ? std::min(direct, large) : large; }

  /// Returns the running job; nullptr before MPI_Init, after MPI_Finalize, and if the ranks do not use the protocol.
  /// Costs one load.
  [[nodiscard]] static const job* current() noexcept;

  /// Carries out the agreement of the ranks and creates the job. The wrapper of MPI_Init calls this in every rank;
  /// collective over all ranks. `level`: the level of thread support that the program has asked for. Creates no job if
  /// a rank cannot use the protocol. Has no effect with HPE_MPI_PIPELINE=off.
  static void begin(int level);
  /// Waits for the transfers in progress of all ranks for which other ranks wait. The wrapper of MPI_Finalize calls
  /// this; collective over all ranks.
  static void await_transfers();
  /// Ends the job of this rank. The wrapper of MPI_Finalize calls this after await_transfers(). After this call, hpe
  /// continues no transfers, so no operation of hpe's own completes any more.
  static void end();

  /// Whether several threads may call MPI at once (several_threads) in the running job; false if no job runs.
  [[nodiscard]] static bool has_several_threads() noexcept {
    const job* const running = current();
    return running != nullptr && running->several_threads;
  }

  /// Records that the program has set an error handler. The program may then continue after a message that was too long
  /// for its receive buffer.
  static void set_survives_errors() noexcept;
  [[nodiscard]] static bool survives_errors() noexcept;

  /// Converts a rank of an intracommunicator to the rank in MPI_COMM_WORLD; MPI_UNDEFINED for processes of other jobs.
  [[nodiscard]] static int world_rank(MPI_Comm comm, int member);
};

}  // namespace hpe::interpose::mpi
