#pragma once

/// Runs a program for one GPU in three ways: unchanged on one device, with patched kernels on one device, or spread
/// over all devices.

#include <memory>
#include <string>
#include <vector>

#include "bench/spread/workloads.h"
#include "hpe/ndarray.hpp"

namespace hpe::bench {

enum class way : std::uint8_t {
  as_it_is,  // on device 0, with all arrays in its memory
  patched,   // on device 0, with all arrays in its memory, with patched kernels, which can compute a part of a grid
  spread,    // on all devices; hpe::ndarray and hpeLaunchOver place the arrays
};

class running_program {
 public:
  /// kernels: the module of single_gpu.cu. `what` and `kernels` must outlive the object.
  running_program(const single_gpu_program& what, const ptx_module& kernels, way how, int devices);

  /// Fills all arrays with their initial values, and the result arrays with NaNs.
  void fill();
  /// Queues all launches of the program.
  void run();
  [[nodiscard]] contents results() const;
  /// Returns the result arrays, for comparisons on a device.
  [[nodiscard]] const std::vector<array<std::uint32_t>>& arrays() const { return arrays_; }

  /// spread_steps() returns how many launches of the last run used several devices. reason() returns why the first
  /// other launch ran on one device.
  [[nodiscard]] unsigned spread_steps() const { return spread_steps_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  void launch(const step& s);

  const single_gpu_program& what_;
  const ptx_module& kernels_;
  way how_;
  std::vector<int> devices_;
  std::vector<array<std::uint32_t>> arrays_;
  unsigned spread_steps_ = 0;
  std::string reason_;
};

/// Returns the number of words of the results that differ between a and b. For inexact results, counts on the host and
/// compares floats as the function below does; for all other results, counts on device 0.
[[nodiscard]] std::uint64_t differences(const running_program& a, const running_program& b,
                                        const single_gpu_program& what, const ptx_module& kernels);
/// Returns the number of words that differ between a and b, which are in host memory. Floats that differ by no more
/// than 2e-4 (1 + the larger magnitude) count as equal, because sums may be rounded differently.
[[nodiscard]] std::uint64_t differences(const contents& a, const contents& b, const single_gpu_program& what);

}  // namespace hpe::bench
