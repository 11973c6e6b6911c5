#include "runtime/device/ptx/description.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/device/device.h"
#include "runtime/ptx/execution/block.h"

namespace hpe::device {

namespace {

ptx_kernel describe(const ptx::function& f) {
  constexpr std::uint32_t most_threads = 1024;
  HPE_REQUIRE(f.formals_size <= most_parameters, HPE_ERROR_INVALID_ARGUMENT,
              "kernel {} has {} bytes of parameters; at most {} are possible", f.name, f.formals_size, most_parameters);
  ptx_kernel result;
  result.name = f.name;
  for (const ptx::formal_parameter& p : f.formals) {
    result.parameter_offsets.push_back(p.offset);
    result.parameter_sizes.push_back(p.size);
  }
  result.parameter_bytes = f.formals_size;
  result.shared_bytes = f.shared_size;
  result.local_bytes = f.local_size;
  result.max_threads = f.max_threads == 0 ? most_threads : std::min(f.max_threads, most_threads);
  result.required_block = f.required_block;
  result.required_cluster = f.cluster;
  result.max_cluster =
      f.max_cluster == 0 ? ptx::most_blocks_of_cluster : std::min(f.max_cluster, ptx::most_blocks_of_cluster);
  result.needs_cluster = f.needs_cluster;
  return result;
}

}  // namespace

std::vector<ptx_kernel> describe_kernels(const ptx::program& p) {
  std::vector<ptx_kernel> all;
  for (const auto& f : p.functions)
    if (f->is_kernel && f->is_defined) all.push_back(describe(*f));
  return all;
}

}  // namespace hpe::device
