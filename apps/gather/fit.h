#pragma once

/// The parameters of the model, from microbenchmarks of this machine.

#include <functional>
#include <string>

#include "apps/gather/model.h"

namespace hpe::gather {

/// Measures runs on one device, on arrays that it makes once. One thread at a time.
class stopwatch {
 public:
  /// Room for tables and values of up to so many bytes, and as many indices of 4 bytes as there are elements of 8.
  stopwatch(int device, std::size_t bytes);

  enum class order { uniform, partitioned, sequential };
  struct pattern {
    order how = order::uniform;
    std::uint64_t partitions = 0;  ///< partitioned
  };
  /// The median of `repeats` runs after one more, in seconds.
  [[nodiscard]] double seconds(const problem& what, const choice& how, const pattern& indices, int repeats = 5);

  [[nodiscard]] int device() const { return device_; }

 private:
  void make(const problem& what, const pattern& indices);

  const int device_;
  array<std::byte> table_, values_;
  array<std::uint32_t> indices_;
  random_indices random_;
  std::string made_;  ///< the indices that are there
};

/// Measures a device and fits the parameters: some seconds. `largest`: bytes of the largest table. told: the name of
/// each step; may be empty.
[[nodiscard]] parameters fit(stopwatch& clock, std::size_t largest,
                             const std::function<void(const std::string&)>& told);

/// The parameters of a device: those in the cache file if it has some, else those of fit(), which are then kept there.
/// A cache file that cannot be read or written is ignored. again: measures in any case.
[[nodiscard]] parameters fitted(int device, bool again, const std::function<void(const std::string&)>& told);

/// Bytes per second of a copy from one device's memory to another's.
[[nodiscard]] double link_rate(int from, int to);

/// The cache file of a device: ~/.cache/hpe/gather-NAME.json, or under $XDG_CACHE_HOME.
[[nodiscard]] std::string cache_file(int device);

}  // namespace hpe::gather
