#pragma once

/// The sizes of thread block clusters that launches request and that kernels require.

#include <driver_types.h>
#include <vector_types.h>

#include "interpose/soft/cudart/module/cudart_module.h"
#include "interpose/soft/cudart/module/launch_attributes.h"

namespace hpe::cudart {

/// Returns the cluster size of a launch: the size that the launch requests or, if it requests none, the size that the
/// kernel requires; zeros if the launch has no clusters. Throws cudaErrorInvalidClusterSize for a size that the kernel
/// does not allow or that does not divide the grid, and if a kernel that needs clusters gets no size. Also checks the
/// preferred (larger) cluster size of the launch, which soft devices do not use.
[[nodiscard]] dim3 choose_cluster(kernel& what, const launch_attributes& attributes, dim3 grid);

/// Sets an attribute of a kernel that concerns clusters, for cudaFuncSetAttribute. Throws cudaErrorInvalidValue for an
/// invalid value or any other attribute, and cudaErrorNotPermitted if the kernel was compiled with a cluster size.
void set_cluster_attribute(kernel& what, cudaFuncAttribute attribute, int value);
void tell_cluster_attributes(kernel& what, cudaFuncAttributes& attributes);

}  // namespace hpe::cudart
