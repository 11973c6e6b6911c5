#pragma once

#include <optional>
#include <vector>

#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// A launch of a kernel by the program.
struct kernel_launch {
  CUfunction function = nullptr;  ///< may also be a CUkernel, which the driver's launch functions accept too
  void** parameters = nullptr;
  void** extra = nullptr;
};

/// Returns all words in the parameters of a launch, including words in structures. The kernel can use only allocations
/// to which these words point, unless it follows pointers that are stored in memory, or uses variables of its module.
/// Returns nullopt if the driver does not report the sizes of the parameters.
std::optional<std::vector<CUdeviceptr>> words_of(const device::cuda::driver& cu, const kernel_launch& launch);

}  // namespace hpe::cuda_hooks
