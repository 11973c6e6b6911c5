#pragma once

/// Runs a program that was written for one GPU: unchanged on one device, with patched kernels on one device, or spread
/// over all devices.

#include <memory>
#include <string>
#include <vector>

#include "bench/spread/workloads.h"
#include "hpe/ndarray.hpp"

namespace hpe::bench {

enum class way : std::uint8_t {
  as_it_is,  // device 0, arrays in its memory
  patched,   // device 0, arrays in its memory, with patched kernels, which can run a part of a grid
  spread,    // all devices; hpe::ndarray and hpeLaunchOver place the arrays
};

class running_program {
 public:
  /// `kernels` is the module of single_gpu.cu. Both must outlive the object.
  running_program(const single_gpu_program& what, const ptx_module& kernels, way how, int devices);

  /// Fills all arrays with their initial values, and result arrays with NaNs.
  void fill();
  /// Queues all steps.
  void run();
  [[nodiscard]] contents results() const;
  /// Returns the result arrays, for comparisons on a device.
  [[nodiscard]] const std::vector<array<std::uint32_t>>& arrays() const { return arrays_; }

  /// spread_steps() returns the number of steps of the last run that ran on several devices; reason() returns why the
  /// first of the other steps ran on one device.
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

/// Returns the number of words of the results that differ, counted on device 0. For results that are floats and not
/// exact, returns the number that differ by more than the rounding of sums can explain, counted on the host.
[[nodiscard]] std::uint64_t differences(const running_program& a, const running_program& b,
                                        const single_gpu_program& what, const ptx_module& kernels);
/// Does the same for results in host memory. Sums of floats may be rounded differently.
[[nodiscard]] std::uint64_t differences(const contents& a, const contents& b, const single_gpu_program& what);

}  // namespace hpe::bench
