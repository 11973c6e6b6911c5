// The functions for graph nodes whose parameters have different structures in the driver and in the runtime.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <bit>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/libcuda/call.h"
#include "interpose/soft/libcuda/contexts.h"
#include "interpose/soft/libcuda/memory/copy_shapes.h"

using namespace hpe::libcuda;
using hpe::cudart::check;

namespace {

/// While the object exists, the given context is current, because a node's context determines the node's device. Null
/// stands for the current context.
class device_of_node {
 public:
  explicit device_of_node(CUcontext context) : context_(context) {
    if (context_ != nullptr) context_table::push(contexts().find(context_));
    require_context();
  }
  ~device_of_node() {
    if (context_ != nullptr) context_table::pop();
  }
  device_of_node(const device_of_node&) = delete;
  device_of_node& operator=(const device_of_node&) = delete;

 private:
  const CUcontext context_;
};

template <class Parameters>
cudaKernelNodeParams kernel_of(const Parameters& from) {
  cudaKernelNodeParams to{};
  to.func = from.func;
  if constexpr (requires { from.kern; }) {
    if (from.func == nullptr) to.func = from.kern;
  }
  to.gridDim = {from.gridDimX, from.gridDimY, from.gridDimZ};
  to.blockDim = {from.blockDimX, from.blockDimY, from.blockDimZ};
  to.sharedMemBytes = from.sharedMemBytes;
  to.kernelParams = from.kernelParams;
  to.extra = from.extra;
  return to;
}

template <class Parameters>
CUcontext context_of(const Parameters& from) {
  if constexpr (requires { from.ctx; }) return from.ctx;
  return nullptr;
}

template <class Parameters>
CUresult add_kernel(const char* function, CUgraphNode* made, CUgraph graph, const CUgraphNode* after, std::size_t count,
                    const Parameters* parameters) {
  return call(function, [&] {
    const device_of_node scope(context_of(given(parameters)));
    const cudaKernelNodeParams same = kernel_of(*parameters);
    return cudaGraphAddKernelNode(made, graph, after, count, &same);
  });
}

template <class Parameters>
CUresult get_kernel(const char* function, CUgraphNode node, Parameters* out) {
  return call(function, [&] {
    cudaKernelNodeParams same{};
    check(cudaGraphKernelNodeGetParams(node, &same));
    given(out) = {};
    out->func = static_cast<CUfunction>(same.func);
    out->gridDimX = same.gridDim.x;
    out->gridDimY = same.gridDim.y;
    out->gridDimZ = same.gridDim.z;
    out->blockDimX = same.blockDim.x;
    out->blockDimY = same.blockDim.y;
    out->blockDimZ = same.blockDim.z;
    out->sharedMemBytes = same.sharedMemBytes;
    out->kernelParams = same.kernelParams;
    out->extra = same.extra;
  });
}

template <class Parameters>
CUresult set_kernel(const char* function, CUgraphNode node, const Parameters* parameters) {
  return call(function, [&] {
    const cudaKernelNodeParams same = kernel_of(given(parameters));
    return cudaGraphKernelNodeSetParams(node, &same);
  });
}

template <class Parameters>
CUresult set_kernel(const char* function, CUgraphExec exec, CUgraphNode node, const Parameters* parameters) {
  return call(function, [&] {
    const cudaKernelNodeParams same = kernel_of(given(parameters));
    return cudaGraphExecKernelNodeSetParams(exec, node, &same);
  });
}

const cudaMemsetParams* memset_of(const CUDA_MEMSET_NODE_PARAMS* from) {
  static_assert(sizeof *from == sizeof(cudaMemsetParams));
  return reinterpret_cast<const cudaMemsetParams*>(from);
}

/// Converts the parameters of a node to the runtime's structure. The parameters of kernels and copies have another
/// layout in the runtime; all other parameters have the same layout.
cudaGraphNodeParams node_of(const CUgraphNodeParams& from) {
  auto to = std::bit_cast<cudaGraphNodeParams>(from);
  switch (from.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const cudaKernelNodeParams same = kernel_of(from.kernel);
      to.kernel = {same.func, same.gridDim, same.blockDim, same.sharedMemBytes, same.kernelParams, same.extra};
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      to.memcpy = {};
      to.memcpy.copyParams = copy_of(from.memcpy.copyParams);
      break;
    default: break;
  }
  return to;
}

CUcontext context_of(const CUgraphNodeParams& from) {
  switch (from.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return from.kernel.ctx;
    case CU_GRAPH_NODE_TYPE_MEMCPY: return from.memcpy.copyCtx;
    case CU_GRAPH_NODE_TYPE_MEMSET: return from.memset.ctx;
    default: return nullptr;
  }
}

CUresult add_node(const char* function, CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                  const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* parameters) {
  return call(function, [&] {
    const device_of_node scope(context_of(given(parameters)));
    cudaGraphNodeParams same = node_of(*parameters);
    check(cudaGraphAddNode(made, graph, after, reinterpret_cast<const cudaGraphEdgeData*>(edges), count, &same));
    if (parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
      parameters->alloc.dptr = reinterpret_cast<CUdeviceptr>(same.alloc.dptr);
    if (parameters->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
      parameters->conditional.phGraph_out = same.conditional.phGraph_out;
  });
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                         const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return add_kernel("cuGraphAddKernelNode_v2", made, graph, after, count, parameters);
}
CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return add_kernel("cuGraphAddKernelNode", made, graph, after, count, parameters);
}
CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* out) {
  return get_kernel("cuGraphKernelNodeGetParams_v2", node, out);
}
CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  return get_kernel("cuGraphKernelNodeGetParams", node, out);
}
CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return set_kernel("cuGraphKernelNodeSetParams_v2", node, parameters);
}
CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return set_kernel("cuGraphKernelNodeSetParams", node, parameters);
}
CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return set_kernel("cuGraphExecKernelNodeSetParams_v2", exec, node, parameters);
}
CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return set_kernel("cuGraphExecKernelNodeSetParams", exec, node, parameters);
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                      const CUDA_MEMCPY3D* parameters, CUcontext context) {
  return call("cuGraphAddMemcpyNode", [&] {
    const device_of_node scope(context);
    const cudaMemcpy3DParms same = copy_of(given(parameters));
    return cudaGraphAddMemcpyNode(made, graph, after, count, &same);
  });
}

CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* out) {
  return call("cuGraphMemcpyNodeGetParams", [&] {
    cudaMemcpy3DParms same{};
    check(cudaGraphMemcpyNodeGetParams(node, &same));
    given(out) = shape_of(same);
  });
}

CUresult CUDAAPI cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* parameters) {
  return call("cuGraphMemcpyNodeSetParams", [&] {
    const cudaMemcpy3DParms same = copy_of(given(parameters));
    return cudaGraphMemcpyNodeSetParams(node, &same);
  });
}

CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* parameters,
                                                CUcontext context) {
  return call("cuGraphExecMemcpyNodeSetParams", [&] {
    const device_of_node scope(context);
    const cudaMemcpy3DParms same = copy_of(given(parameters));
    return cudaGraphExecMemcpyNodeSetParams(exec, node, &same);
  });
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                      const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext context) {
  return call("cuGraphAddMemsetNode", [&] {
    const device_of_node scope(context);
    return cudaGraphAddMemsetNode(made, graph, after, count, memset_of(parameters));
  });
}

CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext context) {
  return call("cuGraphExecMemsetNodeSetParams", [&] {
    const device_of_node scope(context);
    return cudaGraphExecMemsetNodeSetParams(exec, node, memset_of(parameters));
  });
}

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                                   const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* parameters) {
  return add_node("cuGraphAddNode_v2", made, graph, after, edges, count, parameters);
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                CUgraphNodeParams* parameters) {
  return add_node("cuGraphAddNode", made, graph, after, nullptr, count, parameters);
}

/// The context determines only the current device during this call; the kernels in the bodies have their own devices.
CUresult CUDAAPI cuGraphConditionalHandleCreate(CUgraphConditionalHandle* made, CUgraph graph, CUcontext context,
                                                unsigned initial, unsigned flags) {
  return call("cuGraphConditionalHandleCreate", [&] {
    const device_of_node scope(context);
    return cudaGraphConditionalHandleCreate(reinterpret_cast<cudaGraphConditionalHandle*>(made), graph, initial, flags);
  });
}

CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* parameters) {
  return call("cuGraphNodeSetParams", [&] {
    cudaGraphNodeParams same = node_of(given(parameters));
    return cudaGraphNodeSetParams(node, &same);
  });
}

CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* parameters) {
  return call("cuGraphExecNodeSetParams", [&] {
    cudaGraphNodeParams same = node_of(given(parameters));
    return cudaGraphExecNodeSetParams(exec, node, &same);
  });
}

// The versions of CUDA 10 and 11, whose edges have no data, and which return errors through other arguments.

CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                        std::size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}
CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                           std::size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}
CUresult CUDAAPI cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}
CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}
CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec* made, CUgraph graph, CUgraphNode* wrong, char* log,
                                       std::size_t room) {
  if (wrong != nullptr) *wrong = nullptr;
  if (log != nullptr && room > 0) *log = '\0';
  return cuGraphInstantiateWithFlags(made, graph, 0);
}

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* wrong,
                                   CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo told{};
  const CUresult code = cuGraphExecUpdate_v2(exec, graph, &told);
  if (wrong != nullptr) *wrong = told.errorNode;
  if (result != nullptr) *result = told.result;
  return code;
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream stream) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** after, std::size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, after, nullptr, count);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* after, std::size_t count,
                                                   unsigned flags) {
  return cuStreamUpdateCaptureDependencies_v2(stream, after, nullptr, count, flags);
}
}
