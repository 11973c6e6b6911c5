#pragma once

/// Clusters of blocks, as launches ask for them and kernels demand them.

#include <driver_types.h>
#include <vector_types.h>

#include "interpose/cudart/launch_attributes.h"
#include "interpose/cudart/module.h"

namespace hpe::cudart {

/// The cluster that a launch runs in: what it asks for, else what the kernel demands; zeros for none. Throws
/// cudaErrorInvalidClusterSize for one that the kernel cannot have or that does not divide the grid. A soft device
/// makes no use of the larger cluster that a launch would prefer, but it must fit too.
[[nodiscard]] dim3 choose_cluster(kernel& what, const launch_attributes& attributes, dim3 grid);

/// The attributes of cudaFuncSetAttribute that are about clusters. Throws cudaErrorInvalidValue for a value that cannot
/// be and for other attributes, cudaErrorNotPermitted where the kernel was compiled for another cluster.
void set_cluster_attribute(kernel& what, cudaFuncAttribute attribute, int value);
void tell_cluster_attributes(kernel& what, cudaFuncAttributes& attributes);

}  // namespace hpe::cudart
