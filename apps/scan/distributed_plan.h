#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/scan/scan_ranks.h"
#include "apps/scan/team/three_stages.h"

namespace hpe::scan {

/// Batched scans over several nodes (Dieguez et al., Scan-MPS over nodes): each rank has a consecutive part of every
/// problem on its devices. Every rank reduces the chunks of its part; rank 0 gathers the sums of all chunks, scans them
/// on a device, and scatters them; every rank scans its chunks, each from the prefix that rank 0 sent. Parts may differ
/// in length and be empty.
///
/// All ranks construct the plan and run it together. Only one thread at a time may use a plan. If a rank lacks devices,
/// kernels or memory, only this rank throws, and all other ranks wait for it. The program must then end with MPI_Abort.
class distributed_plan {
 public:
  /// mine.length: elements of each problem that this rank has; mine.problems and mine.inclusive are the same on all
  /// ranks. iterations: K of three stages, a power of two; 0: the largest K that the premises allow. Throws hpe::error;
  /// if the arguments of the ranks do not agree, all ranks throw.
  distributed_plan(const operation& what, const batch& mine, ranks& with, const std::vector<int>& devices = {},
                   std::uint64_t iterations = 0);
  distributed_plan(const distributed_plan&) = delete;
  distributed_plan& operator=(const distributed_plan&) = delete;

  /// Queues this rank's part of the scan. Waits until the ranks have exchanged the sums of chunks, but not for the
  /// result. The queued work runs after earlier work on the same arrays, like a launch. input and output are the arrays
  /// of this rank: its parts of the problems, one after another. They are the same array or do not overlap. Throws
  /// hpe::error; if one rank refuses its arrays, all ranks throw.
  void run(const void* input, void* output);

  /// Returns the best placement of this rank's input and output.
  [[nodiscard]] placement where() const;

  /// Describes the choices, one per line.
  [[nodiscard]] std::string explain() const;

 private:
  void scan_sums(std::span<std::byte> mine);
  [[nodiscard]] std::string complaint_about(const void* input, const void* output) const;

  const operation what_;
  const batch work_;
  ranks& ranks_;
  const kernel_set kernels_;
  const std::vector<device_traits> devices_;
  std::optional<three_stages> local_;  ///< none if this rank has no elements
  spread_matrix sums_;                 ///< shape of the matrix of sums, [problem][chunk]
  array<std::byte> all_sums_;          ///< sums of all ranks; allocated only on rank 0
};

}  // namespace hpe::scan
