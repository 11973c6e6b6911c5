// Either the code of a kernel or cudaFuncSetAttribute sets the cluster size that the kernel requires, never both.

#include "interpose/soft/cudart/module/cluster.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/module/kernel_launches.h"
#include "interpose/soft/cudart/module/module_table.h"

namespace hpe::cudart {

namespace {

// Every GPU with clusters supports clusters of eight blocks; for larger clusters, a program must set an attribute of
// the kernel.
constexpr unsigned most_portable = 8;

bool is_none(dim3 cluster) { return cluster.x == 0 && cluster.y == 0 && cluster.z == 0; }

bool is_same(dim3 a, dim3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

unsigned most_blocks(kernel& what) {
  const unsigned most = what.info().max_cluster;
  return what.cluster().allows_non_portable ? most : std::min(most, most_portable);
}

dim3 demanded(kernel& what) {
  const hpeKernelInfo info = what.info();
  const dim3 own(info.required_cluster[0], info.required_cluster[1], info.required_cluster[2]);
  return is_none(own) ? what.cluster().required : own;
}

bool divides(dim3 cluster, dim3 grid) {
  return cluster.x != 0 && cluster.y != 0 && cluster.z != 0 && grid.x % cluster.x == 0 && grid.y % cluster.y == 0 &&
         grid.z % cluster.z == 0;
}

// Returns the cluster size of a launch, without checking whether the size divides the grid.
dim3 allowed_cluster(kernel& what, const launch_attributes& attributes) {
  const dim3 asked = attributes.cluster(), own = demanded(what);
  require(is_none(asked) || is_none(own) || is_same(asked, own), cudaErrorInvalidClusterSize);
  const dim3 cluster = is_none(asked) ? own : asked;
  if (is_none(cluster)) return cluster;
  const std::uint64_t most = most_blocks(what);
  require(cluster.x - 1 < most && cluster.y - 1 < most && cluster.z - 1 < most && volume(cluster) <= most,
          cudaErrorInvalidClusterSize);
  return cluster;
}

void set_required(kernel& what, unsigned dim3::*dimension, int value) {
  require(value >= 0, cudaErrorInvalidValue);
  require(what.info().required_cluster[0] == 0, cudaErrorNotPermitted);
  what.change_cluster(
      [&](kernel::cluster_settings& settings) { settings.required.*dimension = static_cast<unsigned>(value); });
}

int blocks_at_once(kernel& what, int device, const cudaLaunchConfig_t& config) {
  const dim3 block = config.blockDim;
  const std::size_t threads = volume(block);
  const auto most = static_cast<unsigned>(process().devices().properties(device).maxThreadsPerBlock);
  require(threads > 0 && threads <= most, cudaErrorInvalidValue);
  return blocks_per_multiprocessor(what, device, static_cast<int>(threads), config.dynamicSmemBytes);
}

}  // namespace

dim3 choose_cluster(kernel& what, const launch_attributes& attributes, dim3 grid) {
  const dim3 cluster = allowed_cluster(what, attributes);
  if (is_none(cluster)) {
    require(what.info().needs_cluster == 0, cudaErrorInvalidClusterSize);
    return cluster;
  }
  require(divides(cluster, grid), cudaErrorInvalidClusterSize);
  const dim3 preferred = attributes.preferred_cluster();
  require(is_none(preferred) || (divides(preferred, grid) && preferred.x % cluster.x == 0 && preferred.y == cluster.y &&
                                 preferred.z == cluster.z),
          cudaErrorInvalidClusterSize);
  return cluster;
}

void set_cluster_attribute(kernel& what, cudaFuncAttribute attribute, int value) {
  switch (attribute) {
    case cudaFuncAttributeRequiredClusterWidth: return set_required(what, &dim3::x, value);
    case cudaFuncAttributeRequiredClusterHeight: return set_required(what, &dim3::y, value);
    case cudaFuncAttributeRequiredClusterDepth: return set_required(what, &dim3::z, value);
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
      require(value == 0 || value == 1, cudaErrorInvalidValue);
      return what.change_cluster(
          [&](kernel::cluster_settings& settings) { settings.allows_non_portable = value == 1; });
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
      require(value >= cudaClusterSchedulingPolicyDefault && value <= cudaClusterSchedulingPolicyLoadBalancing,
              cudaErrorInvalidValue);
      return what.change_cluster([&](kernel::cluster_settings& settings) { settings.policy = value; });
    default: throw failure(cudaErrorInvalidValue);
  }
}

void tell_cluster_attributes(kernel& what, cudaFuncAttributes& attributes) {
  const kernel::cluster_settings settings = what.cluster();
  const dim3 cluster = demanded(what);
  attributes.clusterDimMustBeSet = what.info().needs_cluster;
  attributes.requiredClusterWidth = static_cast<int>(cluster.x);
  attributes.requiredClusterHeight = static_cast<int>(cluster.y);
  attributes.requiredClusterDepth = static_cast<int>(cluster.z);
  attributes.clusterSchedulingPolicyPreference = settings.policy;
  attributes.nonPortableClusterSizeAllowed = settings.allows_non_portable ? 1 : 0;
}

}  // namespace hpe::cudart

using namespace hpe::cudart;

extern "C" {

/// Ignores the cluster size and the grid in the configuration.
cudaError_t CUDARTAPI cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                           const cudaLaunchConfig_t* config) {
  return api_call("cudaOccupancyMaxPotentialClusterSize", [&] {
    require(size != nullptr && config != nullptr, cudaErrorInvalidValue);
    const std::shared_ptr<kernel> what = process().modules().find_kernel(function);
    const dim3 own = allowed_cluster(*what, {});
    const unsigned most = is_none(own) ? most_blocks(*what) : own.x * own.y * own.z;
    *size = blocks_at_once(*what, process().current_device(), *config) == 0 ? 0 : static_cast<int>(most);
  });
}

/// Each thread of a soft device runs one cluster at a time. If the kernel can run at all, the result is at least 1.
cudaError_t CUDARTAPI cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                                     const cudaLaunchConfig_t* config) {
  return api_call("cudaOccupancyMaxActiveClusters", [&] {
    require(clusters != nullptr, cudaErrorInvalidValue);
    const std::shared_ptr<kernel> what = process().modules().find_kernel(function);
    const launch_attributes attributes = launch_attributes::of(config);
    const dim3 cluster = choose_cluster(*what, attributes, config->gridDim);
    require(!is_none(cluster), cudaErrorInvalidClusterSize);
    const int device = process().current_device();
    const int blocks = blocks_at_once(*what, device, *config);
    const int all = blocks * process().devices().properties(device).multiProcessorCount;
    *clusters = blocks == 0 ? 0 : std::max(1, all / static_cast<int>(cluster.x * cluster.y * cluster.z));
  });
}
}
