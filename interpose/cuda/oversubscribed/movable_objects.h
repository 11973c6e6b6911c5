#pragma once

#include <cuda.h>

#include <map>
#include <optional>
#include <vector>

#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// An allocation of a CUDA program that is memory of hpe, so that its data may be in host memory for a while.
struct movable_object {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  unsigned device = 0;
  unsigned long long number = 0;  ///< unique in the process
  bool for_every_launch = false;  ///< kernels reach it through handles, which the parameters of a launch do not show
};

/// The allocations of a CUDA program that are memory of hpe. Thread-safe.
class movable_objects {
 public:
  void add(CUdeviceptr base, std::size_t bytes, unsigned device);
  /// Returns false if no object starts there.
  bool remove(CUdeviceptr base);

  /// The object that contains the byte at an address.
  [[nodiscard]] std::optional<movable_object> find(CUdeviceptr address) const;
  /// The objects that contain one of the addresses, and those for every launch; each once.
  [[nodiscard]] std::vector<movable_object> find_all(const std::vector<CUdeviceptr>& addresses) const;
  [[nodiscard]] std::vector<movable_object> on(unsigned device) const;
  [[nodiscard]] std::size_t bytes_on(unsigned device) const;

  /// Marks the object at an address, if there is one, as one that every launch may use.
  void use_in_every_launch(CUdeviceptr address);

 private:
  using map = std::map<CUdeviceptr, movable_object>;
  [[nodiscard]] static map::const_iterator at(const map& objects, CUdeviceptr address);

  mutable shared_mutex mutex_;
  map objects_ HPE_GUARDED_BY(mutex_);
  unsigned long long made_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::cuda_hooks
