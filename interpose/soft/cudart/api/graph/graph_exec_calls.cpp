// The CUDA runtime's functions for executable graphs.

#include <cuda_runtime_api.h>

#include "interpose/soft/cudart/api/graph/graph_calls.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/graph/graph_exec.h"
#include "interpose/soft/cudart/graph/graph_operations.h"
#include "interpose/soft/cudart/stream/capture.h"

using namespace hpe::cudart;

namespace {

constexpr unsigned long long all_flags = cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |
                                         cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUseNodePriority;

cudaGraphExec_t instantiate(cudaGraph_t from, unsigned long long flags) {
  require((flags & ~all_flags) == 0, cudaErrorInvalidValue);
  require((flags & cudaGraphInstantiateFlagDeviceLaunch) == 0, cudaErrorNotSupported);
  graph& original = process().graphs().find(from);
  if (original.has_conditions() && original.has_instance())
    throw failure(cudaErrorNotSupported, "a graph with conditional nodes can have one executable graph at a time");
  auto made = std::make_shared<graph_exec>(original, flags);
  original.set_instance(made);
  return process().execs().adopt(std::move(made));
}

/// The operation of the node for a captured launch of an executable graph. When the program launches the graph that
/// contains the node, the operation runs the executable graph with all changes that the program has made to it so far.
class launch_operation final : public stream_operation {
 public:
  explicit launch_operation(std::shared_ptr<graph_exec> what) : what_(std::move(what)) {}
  cudaGraphNodeType type() const override { return cudaGraphNodeTypeGraph; }
  cudaError_t prepare(int /*device*/, stream_task& out) const override {
    out = [] { return cudaSuccess; };
    return cudaSuccess;
  }
  stream_task begin(cudart_stream& where) const override { return what_->begin(where); }

 private:
  std::shared_ptr<graph_exec> what_;
};

void replace(cudaGraphExec_t exec, cudaGraphNode_t node, std::shared_ptr<const stream_operation> made) {
  const auto what = process().execs().find(exec);
  const graph_node& place = process().graphs().find(node);
  what->set(place, with_attributes_of(*what->what(place), std::move(made)));
}

template <class Parameters>
cudaError_t set(const char* function, cudaGraphExec_t exec, cudaGraphNode_t node, const Parameters* parameters) {
  return api_call(function, [&] { replace(exec, node, make_operation(parameters)); });
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t from, unsigned long long flags) {
  return api_call(__func__, [&] {
    require(made != nullptr, cudaErrorInvalidValue);
    *made = instantiate(from, flags);
  });
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t from, unsigned long long flags) {
  return cudaGraphInstantiate(made, from, flags);
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithParams(cudaGraphExec_t* made, cudaGraph_t from,
                                                     cudaGraphInstantiateParams* parameters) {
  return api_call(__func__, [&] {
    require(made != nullptr && parameters != nullptr, cudaErrorInvalidValue);
    parameters->errNode_out = nullptr;
    parameters->result_out = cudaGraphInstantiateError;
    *made = instantiate(from, parameters->flags);
    parameters->result_out = cudaGraphInstantiateSuccess;
  });
}

cudaError_t CUDARTAPI cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return api_call(__func__, [&] {
    require(flags != nullptr, cudaErrorInvalidValue);
    *flags = process().execs().find(exec)->flags();
  });
}

cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return api_call(__func__, [&] { process().execs().destroy(exec); });
}

cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  return api_call(__func__, [&] {
    const auto what = process().execs().find(exec);
    const auto where = process().find_stream(handle);
    if (where->capturing()) {
      check(submit(*where, std::make_shared<launch_operation>(what)));
    } else {
      require_not_capturing(*where);
      what->launch(*where);
    }
  });
}

/// Checks the handles, but uploads nothing, because soft devices need no upload.
cudaError_t CUDARTAPI cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t handle) {
  return api_call(__func__, [&] {
    static_cast<void>(process().execs().find(exec));
    static_cast<void>(process().find_stream(handle));
  });
}

cudaError_t CUDARTAPI cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t from, cudaGraphExecUpdateResultInfo* told) {
  return api_call(__func__, [&] {
    graph_node* differing = nullptr;
    const auto what = process().execs().find(exec);
    auto result = cudaGraphExecUpdateError;
    try {
      result = what->update(process().graphs().find(from), &differing);
    } catch (const failure&) {
      if (told != nullptr) *told = {result, nullptr, nullptr};
      throw;
    }
    if (told != nullptr) *told = {result, differing != nullptr ? handle_of(*differing) : nullptr, nullptr};
    require(result == cudaGraphExecUpdateSuccess, cudaErrorGraphExecUpdateFailure);
  });
}

cudaError_t CUDARTAPI cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       const cudaKernelNodeParams* parameters) {
  return set(__func__, exec, node, parameters);
}

cudaError_t CUDARTAPI cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       const cudaMemcpy3DParms* parameters) {
  return set(__func__, exec, node, parameters);
}

cudaError_t CUDARTAPI cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                                         const void* from, size_t count, cudaMemcpyKind kind) {
  const auto parameters = copy_of_bytes(to, from, count, kind);
  return set(__func__, exec, node, &parameters);
}

cudaError_t CUDARTAPI cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                               const void* symbol, const void* from, size_t count,
                                                               size_t offset, cudaMemcpyKind kind) {
  return api_call(__func__, [&] {
    const auto parameters = copy_of_bytes(address_in_symbol(symbol, offset, count), from, count, kind);
    process().execs().find(exec)->set(process().graphs().find(node), make_operation(&parameters));
  });
}

cudaError_t CUDARTAPI cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                                                 const void* symbol, size_t count, size_t offset,
                                                                 cudaMemcpyKind kind) {
  return api_call(__func__, [&] {
    const auto parameters = copy_of_bytes(to, address_in_symbol(symbol, offset, count), count, kind);
    process().execs().find(exec)->set(process().graphs().find(node), make_operation(&parameters));
  });
}

cudaError_t CUDARTAPI cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       const cudaMemsetParams* parameters) {
  return set(__func__, exec, node, parameters);
}

cudaError_t CUDARTAPI cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const cudaHostNodeParams* parameters) {
  return set(__func__, exec, node, parameters);
}

cudaError_t CUDARTAPI cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                           cudaGraph_t child) {
  return api_call(__func__, [&] {
    process().execs().find(exec)->set_child(process().graphs().find(node), process().graphs().find(child));
  });
}

cudaError_t CUDARTAPI cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                           cudaEvent_t event) {
  return api_call(__func__,
                  [&] { process().execs().find(exec)->set(process().graphs().find(node), make_record(event)); });
}

cudaError_t CUDARTAPI cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                         cudaEvent_t event) {
  return api_call(__func__,
                  [&] { process().execs().find(exec)->set(process().graphs().find(node), make_wait(event)); });
}

cudaError_t CUDARTAPI cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraphNodeParams* parameters) {
  return api_call(__func__, [&] {
    require(parameters != nullptr, cudaErrorInvalidValue);
    replace(exec, node, make_operation(*parameters));
  });
}

cudaError_t CUDARTAPI cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return api_call(__func__, [&] { process().execs().find(exec)->enable(process().graphs().find(node), enabled != 0); });
}

cudaError_t CUDARTAPI cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  return api_call(__func__, [&] {
    require(enabled != nullptr, cudaErrorInvalidValue);
    *enabled = process().execs().find(exec)->enabled(process().graphs().find(node)) ? 1 : 0;
  });
}
}
