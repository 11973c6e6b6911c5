#pragma once

/// The common part of the four programs: the ranks, the field at the start, the kernel,
/// and the comparison with a loop on the host that computes the grid of all ranks.

#include <mpi.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "bench/listings/step.h"
#include "hpe/hpe.hpp"

namespace hpe::bench::listings {

/// The grid is cut along its slowest axis into one slab for each device: first the slabs
/// of rank 0's devices, then those of rank 1's devices, and so on. All functions may be
/// called on any thread.
class experiment {
 public:
  /// Starts MPI. All ranks must have the same number of devices. Throws hpe::error if
  /// there is no device.
  experiment(int* argc, char*** argv, std::string listing);

  int rank = 0, ranks = 1, devices = 1;
  int left = MPI_PROC_NULL, right = MPI_PROC_NULL;  ///< neighbouring ranks

  /// Writes the first step's values of `slabs` slabs of this rank, beginning with slab
  /// `id`, with a halo at either end.
  void start(float* field, int id, int slabs = 1) const;

  /// Queues the step of `cells` cells on a device. The cells are whole planes that begin
  /// at `out` and `in`.
  void launch_stencil(int device, float* out, const float* in, std::size_t cells) const;

  /// Runs a function for each device, each in a thread of its own.
  void on_each_device(const std::function<void(int)>& run) const;

  /// Compares slabs with those of the host after the last step.
  void compare(const float* field, int id, int slabs = 1);

  /// Ends MPI and prints the outcome. Returns the exit status.
  int report();

 private:
  [[nodiscard]] const float* part(const std::vector<float>& field, int id) const;

  std::string listing_;
  hpe::kernel<stencil> kernel_;
  std::vector<float> first_, last_;  // the grid of all ranks
  std::atomic<bool> same_ = true;
};

}  // namespace hpe::bench::listings
