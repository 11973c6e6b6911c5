#pragma once

#include <driver_types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/cudart/graph.h"
#include "interpose/cudart/operation.h"

// What the functions about graphs share. All throw failure.

namespace hpe::cudart {

/// The nodes of handles. cudaErrorInvalidValue for a list that is missing or one that is no node.
std::vector<graph_node*> nodes_of(const cudaGraphNode_t* handles, std::size_t count);

/// Edges may be given without data, or with zeros: the kind that means "after it has finished".
void require_plain_edges(const cudaGraphEdgeData* edges, std::size_t count);

/// What the parameters of a node say; checked against the thread's current device.
std::shared_ptr<const operation> make_operation(const cudaKernelNodeParams* parameters);
std::shared_ptr<const operation> make_operation(const cudaMemcpy3DParms* parameters);
std::shared_ptr<const operation> make_operation(const cudaMemsetParams* parameters);
std::shared_ptr<const operation> make_operation(const cudaHostNodeParams* parameters);
std::shared_ptr<const operation> make_record(cudaEvent_t handle);
std::shared_ptr<const operation> make_wait(cudaEvent_t handle);
cudaMemcpy3DParms copy_of_bytes(void* to, const void* from, std::size_t count, cudaMemcpyKind kind);

/// The address of a variable and an offset in it, if count bytes are there.
void* address_in_symbol(const void* symbol, std::size_t offset, std::size_t count);

/// What takes the place of an operation in its node: a kernel node keeps its attributes when its parameters change.
std::shared_ptr<const operation> with_attributes_of(const operation& before, std::shared_ptr<const operation> made);

/// The operation of cudaGraphAddNode and its relatives, for nodes that are no child graphs.
std::shared_ptr<const operation> make_operation(cudaGraphNodeParams& parameters);

}  // namespace hpe::cudart
