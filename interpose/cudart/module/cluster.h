#pragma once

/// Clusters of thread blocks: the sizes that launches ask for and kernels demand.

#include <driver_types.h>
#include <vector_types.h>

#include "interpose/cudart/module/launch_attributes.h"
#include "interpose/cudart/module/module.h"

namespace hpe::cudart {

/// The cluster size of a launch: the one that it asks for, else the one that the kernel demands; zeros for none. Throws
/// cudaErrorInvalidClusterSize for a size that the kernel does not allow or that does not divide the grid. A soft
/// device ignores the preferred (larger) cluster size of a launch, but checks it as well.
[[nodiscard]] dim3 choose_cluster(kernel& what, const launch_attributes& attributes, dim3 grid);

/// Sets a cluster attribute of cudaFuncSetAttribute. Throws cudaErrorInvalidValue for an invalid value or another
/// attribute, cudaErrorNotPermitted if the kernel was compiled with a cluster size.
void set_cluster_attribute(kernel& what, cudaFuncAttribute attribute, int value);
void tell_cluster_attributes(kernel& what, cudaFuncAttributes& attributes);

}  // namespace hpe::cudart
