#pragma once

#include <driver_types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/soft/cudart/graph/graph.h"
#include "interpose/soft/cudart/stream/stream_operation.h"

// Helper functions for CUDA's functions for graphs. Each helper function throws `failure`.

namespace hpe::cudart {

/// Returns the node with this handle. Throws cudaErrorInvalidValue if there is none.
graph_node& node_of(cudaGraphNode_t handle);

/// Returns the nodes with these handles. Throws cudaErrorInvalidValue if the list is null although `count` is not 0, or
/// contains a value that is not the handle of a node.
std::vector<graph_node*> nodes_of(const cudaGraphNode_t* handles, std::size_t count);

/// Throws if any edge has data other than zeros, because soft devices support only plain dependencies.
void require_plain_edges(const cudaGraphEdgeData* edges, std::size_t count);

/// Clones a graph for cudaGraphClone or for a child graph node. Throws cudaErrorNotSupported for a graph with
/// conditional nodes.
std::unique_ptr<graph> clone_of(const graph& original);

/// Return operations with the parameters of nodes, and check the parameters for the calling thread's current device.
std::shared_ptr<const stream_operation> make_operation(const cudaKernelNodeParams* parameters);
std::shared_ptr<const stream_operation> make_operation(const cudaMemcpy3DParms* parameters);
std::shared_ptr<const stream_operation> make_operation(const cudaMemsetParams* parameters);
std::shared_ptr<const stream_operation> make_operation(const cudaHostNodeParams* parameters);
std::shared_ptr<const stream_operation> make_record(cudaEvent_t handle);
std::shared_ptr<const stream_operation> make_wait(cudaEvent_t handle);
cudaMemcpy3DParms copy_of_bytes(void* to, const void* from, std::size_t count, cudaMemcpyKind kind);

/// Returns the address `offset` bytes after the start of a variable. Throws unless the variable contains the `count`
/// bytes from that address on.
void* address_in_symbol(const void* symbol, std::size_t offset, std::size_t count);

/// Returns the operation `made`, which replaces the operation `before` of a node. For a kernel node, the result has the
/// attributes of `before`.
std::shared_ptr<const stream_operation> with_attributes_of(const stream_operation& before,
                                                           std::shared_ptr<const stream_operation> made);

/// Returns the operation for cudaGraphAddNode and related calls; for an allocation node, also stores the address of the
/// memory in `parameters`. Throws cudaErrorNotSupported for child graph nodes, conditional nodes, and types of nodes
/// that soft devices do not have.
std::shared_ptr<const stream_operation> make_operation(cudaGraphNodeParams& parameters);

}  // namespace hpe::cudart
