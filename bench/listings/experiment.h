#pragma once

/// What the four programs share: the ranks, the initial field, the kernel, and the
/// comparison with a loop on the host that computes the grid of all ranks.

#include <mpi.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "bench/listings/step.h"
#include "hpe/hpe.hpp"

namespace hpe::bench::listings {

/// The grid is cut along its slowest axis into slabs, one for each device: first the
/// slabs of rank 0's devices, then those of rank 1's devices, and so on. All functions
/// may be called on any thread.
class experiment {
 public:
  /// Starts MPI. All ranks must have the same number of devices. Throws hpe::error if
  /// there is no device, or if the MPI library does not support MPI_THREAD_MULTIPLE.
  experiment(int* argc, char*** argv, std::string listing);

  int rank = 0, ranks = 1, devices = 1;
  int left = MPI_PROC_NULL, right = MPI_PROC_NULL;  ///< neighbouring ranks

  /// Writes the initial values of `slabs` slabs of this rank, from slab `id` on, with a
  /// halo before the first and after the last slab.
  void start(float* field, int id, int slabs = 1) const;

  /// Queues one time step of `cells` cells on a device. The cells are whole planes and
  /// begin at `out` and `in`.
  void launch_stencil(int device, float* out, const float* in, std::size_t cells) const;

  /// Calls run(d) for each device d, each in its own thread; returns when all calls have
  /// returned.
  void on_each_device(const std::function<void(int)>& run) const;

  /// Compares slabs after the last step with the same slabs computed on the host;
  /// report() prints the result.
  void compare(const float* field, int id, int slabs = 1);

  /// Ends MPI and prints whether the results of all ranks are equal to the host's.
  /// Returns the exit status for main().
  int report();

 private:
  [[nodiscard]] const float* part(const std::vector<float>& field, int id) const;

  std::string listing_;
  hpe::kernel<stencil> kernel_;
  std::vector<float> first_,
      last_;  // the grid of all ranks before the first and after the last step
  std::atomic<bool> same_ = true;
};

}  // namespace hpe::bench::listings
