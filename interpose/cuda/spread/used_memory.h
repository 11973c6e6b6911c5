#pragma once

#include <map>
#include <string>

#include "interpose/cuda/spread/array_copies.h"
#include "interpose/cuda/spread/dealt_memory.h"

namespace hpe::cuda_hooks {

/// Describes the memory that a launch uses, for runtime/spread. For one thread at a time.
class used_memory {
 public:
  used_memory(const device::cuda::driver& cu, const joined_gpus& gpus, dealt_memory& dealt, const array_copies& copies)
      : cu_(cu), gpus_(gpus), dealt_(dealt), copies_(copies) {}

  /// To be called before the pointers of a launch are described. keeps_copies: copies of arrays are possible now.
  void begin(bool keeps_copies) { keeps_copies_ = keeps_copies; }
  /// The allocation that a pointer points into; null for a null pointer and for host memory. `obstacle` says why other
  /// GPUs may not use it, and stays as it is if they may. Valid until the memory is freed.
  [[nodiscard]] const spread::allocation* describe(CUdeviceptr address, std::string& obstacle);
  /// The range is about to be freed.
  void forget(const dealt_memory::range& r) { of_ranges_.erase(r.base); }
  /// Memory of the driver's has been freed.
  void forget_others() { others_.clear(); }

 private:
  [[nodiscard]] const spread::allocation* describe_range(const dealt_memory::range& r);
  [[nodiscard]] const spread::allocation* describe_other(CUdeviceptr address, std::string& obstacle);

  const device::cuda::driver& cu_;
  const joined_gpus& gpus_;
  dealt_memory& dealt_;
  const array_copies& copies_;
  bool keeps_copies_ = true;
  std::map<CUdeviceptr, spread::allocation> of_ranges_;
  std::map<CUdeviceptr, spread::allocation> others_;  // by their ends
};

}  // namespace hpe::cuda_hooks
