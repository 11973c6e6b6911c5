#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/spread/model/launch.h"

namespace hpe::ptx {
struct function;
}

namespace hpe::cuda_hooks {

/// A kernel, and the parameters of a launch as the program passes them to the driver.
struct kernel_launch {
  CUfunction function = nullptr;  ///< may also be a CUkernel, which the driver's launch functions accept too
  void** parameters = nullptr;
  void** extra = nullptr;
};

/// A launch of a kernel by the program.
struct program_launch : kernel_launch {
  spread::dimension grid{1, 1, 1}, block{1, 1, 1};
  unsigned shared_bytes = 0;
  CUstream stream = nullptr;  ///< never null; for a default stream, its special handle (CU_STREAM_LEGACY, for example)
  const char* obstacle = nullptr;  ///< why this kind of launch stays on one GPU; null: it may be spread
};

/// Returns the parameters of a launch as bytes, in the kernel's layout; empty if the launch does not pass all
/// parameters.
[[nodiscard]] std::vector<std::byte> parameters_of(const ptx::function& kernel, const kernel_launch& launch);
/// Returns the pointer at an offset in these parameters; 0 if they are too short.
[[nodiscard]] CUdeviceptr pointer_in(const std::vector<std::byte>& parameters, std::uint32_t offset);

/// The sizes of the parameters of kernels. The driver is asked once for each kernel. Thread-safe.
class parameter_sizes {
 public:
  using list = std::shared_ptr<const std::vector<std::size_t>>;

  static parameter_sizes& of_process();

  /// Returns the sizes in bytes, in the order of the parameters; null if the driver does not report them. Throws
  /// std::bad_alloc.
  [[nodiscard]] list of(const device::cuda::driver& cu, CUfunction function);
  /// To be called when code may have been unloaded, because new kernels may get the handles of unloaded kernels.
  void forget() noexcept;

 private:
  shared_mutex mutex_;
  std::unordered_map<CUfunction, list> sizes_ HPE_GUARDED_BY(mutex_);
};

/// Returns all words in the parameters of a launch, including words in structures. The kernel can use only allocations
/// to which these words point, unless it follows pointers that are stored in memory, or uses variables of its module.
/// Returns nullopt if the driver does not report the sizes of the parameters, or if `extra` contains no block of
/// parameters.
std::optional<std::vector<CUdeviceptr>> words_of(const device::cuda::driver& cu, const kernel_launch& launch);

}  // namespace hpe::cuda_hooks
