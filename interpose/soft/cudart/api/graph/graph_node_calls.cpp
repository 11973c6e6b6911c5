// The CUDA runtime's functions that create graph nodes and query and change their parameters.

#include <cuda_runtime_api.h>

#include "interpose/soft/cudart/api/graph/graph_calls.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/graph/graph_condition.h"
#include "interpose/soft/cudart/graph/graph_operations.h"
#include "interpose/soft/cudart/stream/operations.h"

using namespace hpe::cudart;

namespace {

graph_node& add(cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before, size_t count,
                std::shared_ptr<const stream_operation> what) {
  require(made != nullptr, cudaErrorInvalidValue);
  graph_node& node =
      process().graphs().find(handle).add(std::move(what), nodes_of(before, count), process().current_device());
  *made = handle_of(node);
  return node;
}

void add_child(cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before, size_t count,
               cudaGraph_t child) {
  // Clones the graph before adding the node, because `child` and `handle` may be the same graph.
  auto copy = clone_of(process().graphs().find(child));
  add(made, handle, before, count, std::make_shared<marker_operation>(cudaGraphNodeTypeGraph))
      .set_child(std::move(copy));
}

void add_conditional(cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before, size_t count,
                     cudaConditionalNodeParams& parameters) {
  const unsigned most = parameters.type == cudaGraphCondTypeIf      ? 2
                        : parameters.type == cudaGraphCondTypeWhile ? 1
                                                                    : ~0U;
  require(parameters.type >= cudaGraphCondTypeIf && parameters.type <= cudaGraphCondTypeSwitch && parameters.size > 0 &&
              parameters.size <= most,
          cudaErrorInvalidValue);
  auto decides = process().conditions().find(parameters.handle);
  decides->claim();
  std::vector<std::shared_ptr<graph>> bodies(parameters.size);
  for (auto& each : bodies) each = process().graphs().make();
  graph_node& node =
      add(made, handle, before, count, std::make_shared<conditional_operation>(std::move(decides), parameters.type));
  parameters.phGraph_out = node.add_bodies(std::move(bodies));
}

/// Returns a node's operation; throws if the operation has another type.
template <class Operation>
const Operation& operation_of(cudaGraphNode_t handle) {
  const auto* const what = dynamic_cast<const Operation*>(node_of(handle).what().get());
  require(what != nullptr, cudaErrorInvalidValue);
  return *what;
}

template <class Parameters>
cudaError_t set(const char* function, cudaGraphNode_t node, const Parameters* parameters) {
  return api_call(function,
                  [&] { node_of(node).set(with_attributes_of(*node_of(node).what(), make_operation(parameters))); });
}

template <class Parameters>
cudaError_t add(const char* function, cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before,
                size_t count, const Parameters* parameters) {
  return api_call(function, [&] { add(made, handle, before, count, make_operation(parameters)); });
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaGraphAddKernelNode(cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before,
                                             size_t count, const cudaKernelNodeParams* parameters) {
  return add(__func__, made, handle, before, count, parameters);
}

cudaError_t CUDARTAPI cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters) {
  return set(__func__, node, parameters);
}

cudaError_t CUDARTAPI cudaGraphKernelNodeGetParams(cudaGraphNode_t handle, cudaKernelNodeParams* out) {
  return api_call(__func__, [&] {
    require(out != nullptr, cudaErrorInvalidValue);
    const auto& what = operation_of<kernel_operation>(handle);
    const auto pointers = std::make_shared<std::vector<const void*>>();
    for (const std::uint32_t offset : what.argument_offsets) pointers->push_back(what.arguments.data() + offset);
    node_of(handle).keep(pointers);  // the program may read the pointers until the node changes
    *out = {const_cast<void*>(what.function),     what.grid, what.block, static_cast<unsigned>(what.shared_bytes),
            const_cast<void**>(pointers->data()), nullptr};
  });
}

cudaError_t CUDARTAPI cudaGraphKernelNodeGetAttribute(cudaGraphNode_t handle, cudaKernelNodeAttrID attribute,
                                                      cudaKernelNodeAttrValue* value) {
  return api_call(__func__, [&] {
    const auto& what = operation_of<kernel_operation>(handle);
    require(value != nullptr, cudaErrorInvalidValue);
    *value = what.attributes.get(attribute);
  });
}

/// Stores the attribute; hpe checks it when the program instantiates the graph.
cudaError_t CUDARTAPI cudaGraphKernelNodeSetAttribute(cudaGraphNode_t handle, cudaKernelNodeAttrID attribute,
                                                      const cudaKernelNodeAttrValue* value) {
  return api_call(__func__, [&] {
    const auto& what = operation_of<kernel_operation>(handle);
    require(value != nullptr, cudaErrorInvalidValue);
    launch_attributes attributes = what.attributes;
    attributes.set(attribute, *value);
    node_of(handle).set(what.with(std::move(attributes)));
  });
}

cudaError_t CUDARTAPI cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  return api_call(__func__, [&] {
    const launch_attributes& attributes = operation_of<kernel_operation>(from).attributes;
    node_of(to).set(operation_of<kernel_operation>(to).with(attributes));
  });
}

cudaError_t CUDARTAPI cudaGraphAddMemcpyNode(cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before,
                                             size_t count, const cudaMemcpy3DParms* parameters) {
  return add(__func__, made, handle, before, count, parameters);
}

cudaError_t CUDARTAPI cudaGraphAddMemcpyNode1D(cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before,
                                               size_t number, void* to, const void* from, size_t count,
                                               cudaMemcpyKind kind) {
  const auto parameters = copy_of_bytes(to, from, count, kind);
  return add(__func__, made, handle, before, number, &parameters);
}

cudaError_t CUDARTAPI cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* made, cudaGraph_t handle,
                                                     const cudaGraphNode_t* before, size_t number, const void* symbol,
                                                     const void* from, size_t count, size_t offset,
                                                     cudaMemcpyKind kind) {
  return api_call(__func__, [&] {
    const auto parameters = copy_of_bytes(address_in_symbol(symbol, offset, count), from, count, kind);
    add(made, handle, before, number, make_operation(&parameters));
  });
}

cudaError_t CUDARTAPI cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* made, cudaGraph_t handle,
                                                       const cudaGraphNode_t* before, size_t number, void* to,
                                                       const void* symbol, size_t count, size_t offset,
                                                       cudaMemcpyKind kind) {
  return api_call(__func__, [&] {
    const auto parameters = copy_of_bytes(to, address_in_symbol(symbol, offset, count), count, kind);
    add(made, handle, before, number, make_operation(&parameters));
  });
}

cudaError_t CUDARTAPI cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* out) {
  return api_call(__func__, [&] {
    require(out != nullptr, cudaErrorInvalidValue);
    *out = operation_of<copy_operation>(node).parameters;
  });
}

cudaError_t CUDARTAPI cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* parameters) {
  return set(__func__, node, parameters);
}

cudaError_t CUDARTAPI cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t count,
                                                     cudaMemcpyKind kind) {
  const auto parameters = copy_of_bytes(to, from, count, kind);
  return set(__func__, node, &parameters);
}

cudaError_t CUDARTAPI cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol, const void* from,
                                                           size_t count, size_t offset, cudaMemcpyKind kind) {
  return api_call(__func__, [&] {
    const auto parameters = copy_of_bytes(address_in_symbol(symbol, offset, count), from, count, kind);
    node_of(node).set(make_operation(&parameters));
  });
}

cudaError_t CUDARTAPI cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to, const void* symbol,
                                                             size_t count, size_t offset, cudaMemcpyKind kind) {
  return api_call(__func__, [&] {
    const auto parameters = copy_of_bytes(to, address_in_symbol(symbol, offset, count), count, kind);
    node_of(node).set(make_operation(&parameters));
  });
}

cudaError_t CUDARTAPI cudaGraphAddMemsetNode(cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before,
                                             size_t count, const cudaMemsetParams* parameters) {
  return add(__func__, made, handle, before, count, parameters);
}

cudaError_t CUDARTAPI cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* out) {
  return api_call(__func__, [&] {
    require(out != nullptr, cudaErrorInvalidValue);
    *out = operation_of<set_operation>(node).parameters;
  });
}

cudaError_t CUDARTAPI cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* parameters) {
  return set(__func__, node, parameters);
}

cudaError_t CUDARTAPI cudaGraphAddHostNode(cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before,
                                           size_t count, const cudaHostNodeParams* parameters) {
  return add(__func__, made, handle, before, count, parameters);
}

cudaError_t CUDARTAPI cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* out) {
  return api_call(__func__, [&] {
    require(out != nullptr, cudaErrorInvalidValue);
    *out = operation_of<host_operation>(node).parameters();
  });
}

cudaError_t CUDARTAPI cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* parameters) {
  return set(__func__, node, parameters);
}

cudaError_t CUDARTAPI cudaGraphAddEmptyNode(cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before,
                                            size_t count) {
  return api_call(
      __func__, [&] { add(made, handle, before, count, std::make_shared<marker_operation>(cudaGraphNodeTypeEmpty)); });
}

cudaError_t CUDARTAPI cudaGraphAddChildGraphNode(cudaGraphNode_t* made, cudaGraph_t handle,
                                                 const cudaGraphNode_t* before, size_t count, cudaGraph_t child) {
  return api_call(__func__, [&] { add_child(made, handle, before, count, child); });
}

cudaError_t CUDARTAPI cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* child) {
  return api_call(__func__, [&] {
    require(child != nullptr && node_of(node).child() != nullptr, cudaErrorInvalidValue);
    *child = handle_of(*node_of(node).child());
  });
}

cudaError_t CUDARTAPI cudaGraphAddEventRecordNode(cudaGraphNode_t* made, cudaGraph_t handle,
                                                  const cudaGraphNode_t* before, size_t count, cudaEvent_t event) {
  return api_call(__func__, [&] { add(made, handle, before, count, make_record(event)); });
}

cudaError_t CUDARTAPI cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return api_call(__func__, [&] {
    require(event != nullptr, cudaErrorInvalidValue);
    *event = operation_of<record_operation>(node).handle();
  });
}

cudaError_t CUDARTAPI cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return api_call(__func__, [&] { node_of(node).set(make_record(event)); });
}

cudaError_t CUDARTAPI cudaGraphAddEventWaitNode(cudaGraphNode_t* made, cudaGraph_t handle,
                                                const cudaGraphNode_t* before, size_t count, cudaEvent_t event) {
  return api_call(__func__, [&] { add(made, handle, before, count, make_wait(event)); });
}

cudaError_t CUDARTAPI cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return api_call(__func__, [&] {
    require(event != nullptr, cudaErrorInvalidValue);
    *event = operation_of<wait_operation>(node).handle();
  });
}

cudaError_t CUDARTAPI cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return api_call(__func__, [&] { node_of(node).set(make_wait(event)); });
}

cudaError_t CUDARTAPI cudaGraphAddNode(cudaGraphNode_t* made, cudaGraph_t handle, const cudaGraphNode_t* before,
                                       const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters) {
  return api_call(__func__, [&] {
    require(parameters != nullptr, cudaErrorInvalidValue);
    require_plain_edges(edges, count);
    if (parameters->type == cudaGraphNodeTypeGraph) {
      add_child(made, handle, before, count, parameters->graph.graph);
    } else if (parameters->type == cudaGraphNodeTypeConditional) {
      add_conditional(made, handle, before, count, parameters->conditional);
    } else {
      add(made, handle, before, count, make_operation(*parameters));
    }
  });
}

/// The handle is valid as long as the graph or an executable graph of it exists.
cudaError_t CUDARTAPI cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* made, cudaGraph_t handle,
                                                       unsigned initial, unsigned flags) {
  return api_call(__func__, [&] {
    require(made != nullptr && (flags & ~unsigned{cudaGraphCondAssignDefault}) == 0, cudaErrorInvalidValue);
    graph& owner = process().graphs().find(handle);
    const auto decides = process().conditions().make(initial, flags == cudaGraphCondAssignDefault);
    owner.keep(decides.get(), decides, 1);
    *made = decides->handle();
  });
}

cudaError_t CUDARTAPI cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* parameters) {
  return api_call(__func__, [&] {
    require(parameters != nullptr, cudaErrorInvalidValue);
    node_of(node).set(with_attributes_of(*node_of(node).what(), make_operation(*parameters)));
  });
}
}
