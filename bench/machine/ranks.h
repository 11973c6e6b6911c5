#pragma once

/// The MPI ranks that mpirun started, for a profile of several machines. hpe-bench-machine contains a version of this
/// class without MPI, so that it runs on machines without MPI; under mpirun, it executes hpe-machine-mpi, which
/// contains the version with MPI.

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "apps/predict/machine_profile.h"

namespace hpe::bench {

struct message_rates {
  std::optional<predict::network> on_one_machine, between_machines;  ///< set only on rank 0
};

/// A process creates one object when it starts and destroys it before it ends. All ranks must create and destroy the
/// object, and call messages(), seconds_on() and wait_for_all(), together.
class ranks {
 public:
  /// argv: the arguments of the program, which are passed to hpe-machine-mpi.
  explicit ranks(char** argv);
  ranks(const ranks&) = delete;
  ranks& operator=(const ranks&) = delete;
  ~ranks();  // NOLINT(performance-trivially-destructible): not trivial with MPI

  /// Whether this process makes the measurements that need only one machine: true for rank 0 and for a process without
  /// MPI.
  [[nodiscard]] bool leads() const { return rank_ == 0; }
  /// The number of machines; 1 if two ranks run on the same machine.
  [[nodiscard]] int machines() const { return machines_; }

  /// Measures messages between host memory of ranks: the latency of an empty message between two ranks; the rate of
  /// messages of `bytes` bytes between two ranks; and, for 2, 4, ... and all ranks, the rate of each rank while that
  /// many ranks send to and receive from their neighbours.
  [[nodiscard]] message_rates messages(std::size_t bytes, unsigned repeats);
  /// Runs body() on the first `machines` machines at the same time, `repeats` times, while the other ranks sleep. The
  /// time of a repeat is the time of the slowest machine. Returns the time of the fastest repeat in seconds.
  [[nodiscard]] double seconds_on(int machines, unsigned repeats, const std::function<void()>& body);
  /// Returns when all ranks have called this function. Waiting ranks sleep, so that they use no processor time.
  void wait_for_all();

 private:
  int rank_ = 0, size_ = 1, machines_ = 1;
};

}  // namespace hpe::bench
