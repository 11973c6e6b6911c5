#pragma once

#include <optional>
#include <vector>

#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// A launch as the program asks for it.
struct kernel_launch {
  CUfunction function = nullptr;  ///< or a CUkernel, which the entries for launches take as well
  void** parameters = nullptr;
  void** extra = nullptr;
};

/// Every word among the parameters of a launch that might be an address, structures searched as well: the objects that
/// the kernel may use, if it follows no pointers that lie in memory. Empty if the driver does not tell the parameters.
std::optional<std::vector<CUdeviceptr>> words_of(const device::cuda::driver& cu, const kernel_launch& launch);

}  // namespace hpe::cuda_hooks
