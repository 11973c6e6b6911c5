#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/scan/ranks.h"
#include "apps/scan/three_stages.h"

namespace hpe::scan {

/// Batched scans over several nodes (Dieguez et al., Scan-MPS over nodes): each rank has a consecutive part of every
/// problem on its devices. Every rank reduces the chunks of its part; rank 0 gathers the sums of all chunks, scans them
/// on a device, and scatters them; every rank scans its chunks behind them. Parts may differ in length and be empty.
///
/// Made and run by all ranks together. One thread at a time. A rank that has no such devices, kernels or memory throws
/// alone, and the others wait for it: such a program ends with MPI_Abort.
class distributed_plan {
 public:
  /// mine.length: elements of each problem that this rank has; mine.problems and mine.inclusive are the same
  /// everywhere. iterations: K of three stages, a power of two; 0: the largest that the premises allow. Throws
  /// hpe::error, on all ranks if they do not agree.
  distributed_plan(const operation& what, const batch& mine, ranks& with, const std::vector<int>& devices = {},
                   std::uint64_t iterations = 0);
  distributed_plan(const distributed_plan&) = delete;
  distributed_plan& operator=(const distributed_plan&) = delete;

  /// Scans; input and output are those of this rank: its parts of the problems one behind the other, in the same place
  /// or without overlap. Returns when this rank's results are queued, in the order of a launch. Throws hpe::error;
  /// where one rank refuses its arrays, all throw.
  void run(const void* input, void* output);

  /// Where this rank's input and output are best placed.
  [[nodiscard]] placement where() const;

  /// In lines.
  [[nodiscard]] std::string explain() const;

 private:
  void scan_sums(std::span<std::byte> mine);
  [[nodiscard]] std::string complaint_about(const void* input, const void* output) const;

  const operation what_;
  const batch work_;
  ranks& ranks_;
  const kernel_set kernels_;
  const std::vector<device_traits> devices_;
  std::optional<three_stages> local_;  ///< none where this rank has no elements
  spread_matrix sums_;                 ///< [problem][chunk]
  array<std::byte> all_sums_;          ///< of rank 0
};

}  // namespace hpe::scan
