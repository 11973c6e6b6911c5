#pragma once

/// Fits the parameters of the model to microbenchmarks of this machine.

#include <functional>
#include <string>

#include "apps/gather/model.h"

namespace hpe::gather {

/// Measures the time of runs on one device, on arrays that are allocated once. Only one thread at a time may use a
/// stopwatch.
class stopwatch {
 public:
  /// Allocates a table and values of `bytes` bytes each, and bytes / 8 indices of 4 bytes.
  stopwatch(int device, std::size_t bytes);

  enum class order { uniform, partitioned, sequential };
  struct pattern {
    order how = order::uniform;
    std::uint64_t partitions = 0;  ///< partitioned
  };
  /// Returns the median time of `repeats` runs in seconds, after one run to warm up. Throws hpe::error
  /// (HPE_ERROR_INVALID_ARGUMENT) for a problem that is larger than the arrays.
  [[nodiscard]] double seconds(const problem& what, const choice& how, const pattern& indices, int repeats = 5);

  [[nodiscard]] int device() const { return device_; }

 private:
  void make(const problem& what, const pattern& indices);

  const int device_;
  array<std::byte> table_, values_;
  array<std::uint32_t> indices_;
  random_indices random_;
  std::string made_;  ///< description of the indices in indices_
};

/// Measures a device and returns fitted parameters. This takes some seconds. `largest`: bytes of the largest table.
/// `told`: a function that is called with the name of each step, or an empty function.
[[nodiscard]] parameters fit(stopwatch& clock, std::size_t largest,
                             const std::function<void(const std::string&)>& told);

/// Returns the parameters of a device: from the cache file if it contains them, else from fit(), whose result is then
/// written to the file. A cache file that cannot be read or written is ignored. again: measure even if the file
/// contains the parameters.
[[nodiscard]] parameters fitted(int device, bool again, const std::function<void(const std::string&)>& told);

/// Measures a copy from one device's memory to another device's memory. Returns the rate in bytes per second.
[[nodiscard]] double link_rate(int from, int to);

/// Returns the path of a device's cache file: hpe/gather-NAME-UNITS.json in $XDG_CACHE_HOME or ~/.cache, where UNITS is
/// the number of compute units; empty if neither XDG_CACHE_HOME nor HOME is set.
[[nodiscard]] std::string cache_file(int device);

}  // namespace hpe::gather
