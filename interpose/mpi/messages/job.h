#pragma once

/// What the ranks of a job have agreed on in MPI_Init: whether they send large messages of device memory by the
/// protocol of this folder, and what they need for it. All ranks have libhpe-mpi.so in front of their MPI, or none.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

struct job {
  /// A number that no payload has by accident.
  using number = std::array<std::uint64_t, 2>;

  number id{};
  /// hpe's own communicator; its ranks are those of MPI_COMM_WORLD.
  MPI_Comm channel = nullptr;
  MPI_Comm self = nullptr;  ///< likewise, of this process alone
  int rank = 0;
  bool several_threads = false;  ///< may be in MPI at once
  /// By rank.
  std::vector<bool> same_machine;
  std::size_t large = 0;   ///< bytes of a message that goes by the protocol
  std::size_t direct = 0;  ///< likewise to a rank of the same machine; 0: there is no direct copy
  std::size_t chunk = 0;   ///< the most bytes of a chunk

  /// To a rank on this machine that may copy directly.
  [[nodiscard]] bool is_near(int other) const { return direct != 0 && same_machine[static_cast<std::size_t>(other)]; }
  /// Bytes from which on messages to it go by the protocol.
  [[nodiscard]] std::size_t least(int other) const { return is_near(other) ? std::min(direct, large) : large; }

  /// The one that is running; nullptr outside of MPI, and if the ranks did not agree. One load.
  [[nodiscard]] static const job* current() noexcept;

  /// In MPI_Init of every rank: collective. An option that says no leaves everything as it is.
  static void begin();
  /// Before MPI_Finalize: what goes on is brought to its end.
  static void end();

  /// The program has set an error handler, so it may live on after a receive that was too short.
  static void set_survives_errors() noexcept;
  [[nodiscard]] static bool survives_errors() noexcept;

  /// The rank in MPI_COMM_WORLD of a member of an intracommunicator; MPI_UNDEFINED for processes of other jobs.
  [[nodiscard]] static int world_rank(MPI_Comm comm, int member);
};

}  // namespace hpe::interpose::mpi
