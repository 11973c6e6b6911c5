#pragma once

#include <cuda.h>

#include <cstddef>

// cuda.h defines these names as macros that select the newer versions of entries. The macros are undefined here, so
// that this code can also name the older versions.
#undef cuCtxCreate
#undef cuCtxDestroy
#undef cuCtxSynchronize
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuGraphAddNode
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphExecUpdate
#undef cuGraphInstantiate
#undef cuIpcOpenMemHandle
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync
#undef cuStreamBatchMemOp
#undef cuStreamDestroy
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64

// These declarations have the types of driver entries that cuda.h no longer declares; no functions with these names
// exist.
extern "C" {
CUresult CUDAAPI hpe_make_context_of_3020(CUcontext* made, unsigned flags, CUdevice device);
CUresult CUDAAPI hpe_make_context_of_11040(CUcontext* made, CUexecAffinityParam* parameters, int count, unsigned flags,
                                           CUdevice device);
CUresult CUDAAPI hpe_wait_for_context(CUcontext context);
CUresult CUDAAPI hpe_copy_batch_of_12080(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                                         CUmemcpyAttributes* attributes, std::size_t* attribute_indices,
                                         std::size_t attribute_count, std::size_t* failed, CUstream stream);
CUresult CUDAAPI hpe_add_node_of_12020(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                       CUgraphNodeParams* what);
CUresult CUDAAPI hpe_set_kernel_of_10000(CUgraphExec instance, CUgraphNode node,
                                         const CUDA_KERNEL_NODE_PARAMS_v1* what);
CUresult CUDAAPI hpe_update_instance_of_10020(CUgraphExec instance, CUgraph graph, CUgraphNode* failed,
                                              CUgraphExecUpdateResult* outcome);
CUresult CUDAAPI hpe_instantiate_of_10000(CUgraphExec* instance, CUgraph graph, CUgraphNode* failed, char* told,
                                          std::size_t bytes);
CUresult CUDAAPI hpe_copy_3d_batch_of_12080(std::size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, std::size_t* failed,
                                            unsigned long long flags, CUstream stream);
}

namespace hpe::cuda_hooks {

/// Pointers to the driver's own functions, which the hooks call. The shim stores them here before any program can call
/// a hook.
struct real_entries {
#define HPE_HOOK(symbol, declaration, function) decltype(&::declaration) symbol = nullptr;
#include "interpose/gpu/hooks/hooks.def"
#undef HPE_HOOK
};

extern constinit real_entries real;

}  // namespace hpe::cuda_hooks
