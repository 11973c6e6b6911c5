#pragma once

#include <optional>

#include "apps/scan/scan_operation.h"
#include "hpe/hpe.hpp"
#include "kernels/scan.h"

namespace hpe::scan {

// The parameters have the same layout for every type of element, because they contain only pointers to elements.
using single_pass_parameters = kernels::scan_single_pass<std::byte>;
using stage_kernel_parameters = kernels::scan_three_stages<std::byte>;
using nothing = kernels::scan_fence_parameters;

/// The kernels of one operation.
struct kernel_set {
  std::size_t element_size;
  kernel<stage_kernel_parameters> reduce, sums, chunks;
  std::optional<kernel<single_pass_parameters>> single_pass;  ///< empty if a device has no single-pass kernel
  kernel<nothing> fence;  ///< does nothing; the accesses of its launches order other launches
};

/// Loads the kernels of an operation. Throws hpe::error if the module or a kernel that every module must have is
/// missing.
[[nodiscard]] kernel_set load_kernels(const operation& what);

/// Returns the path of libhpe-scan-kernels.so, in the folder of libhpe.so. Throws hpe::error if the file does not
/// exist.
[[nodiscard]] std::string own_module();

}  // namespace hpe::scan
