#pragma once

#include <driver_types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/cudart/graph/graph.h"
#include "interpose/cudart/stream/operation.h"

// Helpers of the graph functions. All throw failure.

namespace hpe::cudart {

/// The nodes of a list of handles. Throws cudaErrorInvalidValue if the list is null or contains something that is no
/// node.
std::vector<graph_node*> nodes_of(const cudaGraphNode_t* handles, std::size_t count);

/// Throws unless the edges have no data, or only zeros, which mean a plain dependency.
void require_plain_edges(const cudaGraphEdgeData* edges, std::size_t count);

/// A clone for cudaGraphClone or a child graph node. Throws cudaErrorNotSupported for a graph with conditional nodes.
std::unique_ptr<graph> clone_of(const graph& original);

/// Operations from the parameters of nodes, checked against the thread's current device.
std::shared_ptr<const operation> make_operation(const cudaKernelNodeParams* parameters);
std::shared_ptr<const operation> make_operation(const cudaMemcpy3DParms* parameters);
std::shared_ptr<const operation> make_operation(const cudaMemsetParams* parameters);
std::shared_ptr<const operation> make_operation(const cudaHostNodeParams* parameters);
std::shared_ptr<const operation> make_record(cudaEvent_t handle);
std::shared_ptr<const operation> make_wait(cudaEvent_t handle);
cudaMemcpy3DParms copy_of_bytes(void* to, const void* from, std::size_t count, cudaMemcpyKind kind);

/// The address of a variable plus offset. Throws unless the variable has `count` bytes there.
void* address_in_symbol(const void* symbol, std::size_t offset, std::size_t count);

/// The replacement of a node's operation: for a kernel node it keeps the attributes when the parameters change.
std::shared_ptr<const operation> with_attributes_of(const operation& before, std::shared_ptr<const operation> made);

/// The operation of cudaGraphAddNode and related calls, for all nodes except child graphs.
std::shared_ptr<const operation> make_operation(cudaGraphNodeParams& parameters);

}  // namespace hpe::cudart
