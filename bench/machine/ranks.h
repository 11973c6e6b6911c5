#pragma once

/// The ranks of MPI that mpirun started, for a profile of several machines. hpe-bench-machine has the class without
/// MPI, so it also runs where no MPI is installed; under mpirun it becomes hpe-machine-mpi, which has the class with
/// MPI.

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "apps/predict/machine_profile.h"

namespace hpe::bench {

struct message_rates {
  std::optional<predict::network> on_one_machine, between_machines;  ///< known to the rank that leads
};

/// One object for a process, from its beginning to its end. Member functions other than leads() are collective.
class ranks {
 public:
  /// argv: the arguments of the program, for hpe-machine-mpi.
  explicit ranks(char** argv);
  ranks(const ranks&) = delete;
  ranks& operator=(const ranks&) = delete;
  ~ranks();  // NOLINT(performance-trivially-destructible): not trivial with MPI

  /// Whether this process measures what concerns one machine: rank 0, or a process without MPI.
  [[nodiscard]] bool leads() const { return rank_ == 0; }
  /// The number of machines; 1 if two ranks have the same one.
  [[nodiscard]] int machines() const { return machines_; }

  /// Measures messages in host memory: the latency of an empty one between two ranks, the rate of messages of this
  /// size, and that of each of 2, 4, ... and all ranks which send to their neighbours and receive from them.
  [[nodiscard]] message_rates messages(std::size_t bytes, unsigned repeats);
  /// Runs body on the first `machines` machines concurrently; returns the seconds of the slowest, the fastest of the
  /// repeats. The other ranks sleep.
  [[nodiscard]] double seconds_on(int machines, unsigned repeats, const std::function<void()>& body);
  /// Returns when all ranks have called it. Ranks that wait sleep, so that they take no processor from the others.
  void wait_for_all();

 private:
  int rank_ = 0, size_ = 1, machines_ = 1;
};

}  // namespace hpe::bench
