#pragma once

/// Keeps the footprints of launches that a program repeats, because computing a footprint takes longer than queuing a
/// launch.

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/spread/footprint.h"

namespace hpe::spread {

/// Thread-safe.
class repeated_footprints {
 public:
  /// Returns the bytes that the blocks of a launch may access (footprint::with_overwritten). Returns null in the first
  /// launch with the same kernel, shape, parameters and arrays, and if these bytes are not known. For the arguments,
  /// see footprint.
  [[nodiscard]] std::shared_ptr<const std::vector<used_bytes>> find(const kernel_model& kernel, const launch& l,
                                                                    std::span<const kernel_array* const> arrays);
  /// To be called when a kernel_model is destroyed, because another one may get its address.
  void forget();

 private:
  struct known_launch {
    bool is_computed = false;
    std::shared_ptr<const std::vector<used_bytes>> used;  // null if the bytes are not known
  };
  // When the table is full, it is emptied.
  static constexpr std::size_t most_launches = 4096;

  mutex mutex_;
  std::unordered_map<std::string, known_launch> launches_ HPE_GUARDED_BY(mutex_);  // by all that find() is given
};

}  // namespace hpe::spread
