#pragma once

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "interpose/gpu/spread/part_launches.h"
#include "interpose/gpu/spread/program_code.h"
#include "runtime/base/thread_safety.h"
#include "runtime/check/checker.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/spread/model/certain_accesses.h"

namespace hpe::cuda_hooks {

/// The accesses of a launch, as far as the analysis of the kernel's PTX knows them.
struct launch_accesses {
  check::operation_ptr what;
  std::vector<check::access_range> certain;
  /// The values of the pointers through which the launch makes these accesses.
  std::vector<CUdeviceptr> pointers;
  /// Addresses in allocations: the launch may write bytes of the allocation before its certain reads.
  std::vector<CUdeviceptr> written_before;
  /// Addresses in allocations: the launch may write bytes of the allocation that `certain` does not contain.
  std::vector<CUdeviceptr> written;
  bool writes_anywhere = false;  ///< the launch may write any memory
  bool tells_host = false;       ///< CPU code may see by a value in memory how far the launch has come
};

/// The kernels of a program that is checked. Analyses a kernel at its first launch. Thread-safe.
class analysed_kernels {
 public:
  explicit analysed_kernels(const device::cuda::driver& cu) : cu_(cu) {}

  [[nodiscard]] launch_accesses describe(const program_launch& launch,
                                         const std::shared_ptr<const check::call_place>& place);
  /// To be called when the program has unloaded code, because new kernels may get the handles of unloaded kernels.
  void forget();

 private:
  struct kernel {
    std::string name;  // "kernel add(float*, int)"
    std::shared_ptr<const ptx::program> program;
    std::unique_ptr<spread::kernel_model> model;  // null: hpe has no PTX of the kernel
    std::vector<std::uint32_t> offsets, sizes;    // of the parameters
    std::vector<std::string> places;              // by the number of the access
    mutex of_launches;
    /// The accesses of earlier launches, by the keys of the launches (kernel_model::append_key).
    std::unordered_map<std::string, launch_accesses> known HPE_GUARDED_BY(of_launches);
  };
  static constexpr std::size_t most_known = 64;  // the largest number of launches of a kernel in `known`
  [[nodiscard]] static launch_accesses accesses_of(const kernel& its, const program_launch& launch,
                                                   const std::vector<std::byte>& parameters);
  /// The kernel of a handle, which the first launch analyses.
  struct analysis {
    std::once_flag once;
    std::shared_ptr<kernel> its;
  };
  /// Returns the kernel. The first call for a kernel takes up to seconds; only calls for the same kernel wait for it.
  [[nodiscard]] std::shared_ptr<kernel> find(CUfunction handle);
  [[nodiscard]] std::shared_ptr<kernel> look_up(CUfunction handle) const;

  const device::cuda::driver& cu_;
  mutex mutex_;
  std::unordered_map<CUfunction, std::shared_ptr<analysis>> kernels_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
