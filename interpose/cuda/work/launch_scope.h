#pragma once

#include <optional>
#include <vector>

#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// A launch of a kernel by the program.
struct kernel_launch {
  CUfunction function = nullptr;  ///< may also be a CUkernel, which launch entries accept too
  void** parameters = nullptr;
  void** extra = nullptr;
};

/// All words in the parameters of a launch, including words inside structures, that might be addresses. These words
/// point to all objects that the kernel can use, unless the kernel follows pointers that are stored in memory. Returns
/// nullopt if the driver does not report the sizes of the parameters.
std::optional<std::vector<CUdeviceptr>> words_of(const device::cuda::driver& cu, const kernel_launch& launch);

}  // namespace hpe::cuda_hooks
