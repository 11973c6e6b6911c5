#pragma once

/// The ranks of MPI that mpirun started, for a profile of several machines. hpe-bench-machine contains this class
/// without MPI, so it runs on a machine without MPI; under mpirun, it executes hpe-machine-mpi, which contains the
/// class with MPI.

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "apps/predict/machine_profile.h"

namespace hpe::bench {

struct message_rates {
  std::optional<predict::network> on_one_machine, between_machines;  ///< set only in the rank that leads
};

/// A process makes one object at its start and keeps it until its end. All ranks must call messages(), seconds_on() and
/// wait_for_all(), and make and destroy the object, together.
class ranks {
 public:
  /// argv: the arguments of the program, which are passed to hpe-machine-mpi.
  explicit ranks(char** argv);
  ranks(const ranks&) = delete;
  ranks& operator=(const ranks&) = delete;
  ~ranks();  // NOLINT(performance-trivially-destructible): not trivial with MPI

  /// Whether this process makes the measurements of a single machine: true for rank 0 and for a process without MPI.
  [[nodiscard]] bool leads() const { return rank_ == 0; }
  /// The number of machines; 1 if two ranks run on the same machine.
  [[nodiscard]] int machines() const { return machines_; }

  /// Measures messages in host memory: the latency of an empty message between two ranks; the rate of messages of
  /// `bytes` bytes between two ranks; and, for 2, 4, ... and all ranks, the rate of each rank while that many send to
  /// and receive from their neighbours.
  [[nodiscard]] message_rates messages(std::size_t bytes, unsigned repeats);
  /// Runs body on the first `machines` machines at the same time, `repeats` times; the other ranks sleep. The time of a
  /// repeat is that of its slowest machine; returns the time of the fastest repeat, in seconds.
  [[nodiscard]] double seconds_on(int machines, unsigned repeats, const std::function<void()>& body);
  /// Returns when all ranks have called this function. Waiting ranks sleep, so that they use no processor time.
  void wait_for_all();

 private:
  int rank_ = 0, size_ = 1, machines_ = 1;
};

}  // namespace hpe::bench
