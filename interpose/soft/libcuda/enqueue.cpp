// Work that functions of the program queue through hpeEnqueue (runtime/core/api/soft_cuda.h). As on GPUs, the work is
// captured while the function runs, and runs afterwards.
#include <cuda.h>

#include <array>
#include <mutex>
#include <span>

#include "hpe/hpe.h"
#include "interpose/soft/cudart/check/declared_work.h"
#include "interpose/soft/cudart/stream/checked_work.h"
#include "interpose/soft/libcuda/call.h"

namespace {

// The stream on which all work of a device runs, so that it runs in the order of the calls.
CUresult stream_of(unsigned device, CUstream& stream) {
  static std::mutex mutex;
  static std::array<CUstream, 64> all{};
  const std::lock_guard lock(mutex);
  unsigned flags = 0;
  const bool exists = all.at(device) != nullptr && cuStreamGetFlags(all[device], &flags) == CUDA_SUCCESS;
  if (!exists)  // at first, and after a reset of the device
    if (const CUresult wrong = cuStreamCreate(&all.at(device), CU_STREAM_NON_BLOCKING)) return wrong;
  stream = all.at(device);
  return CUDA_SUCCESS;
}

// Runs the instance. If the program is checked, waits for its end, and compares its accesses with the declared ones.
CUresult launch(CUgraphExec instance, CUstream on, std::span<const hpeAccess> accesses) {
  if (hpe::cudart::checker() == nullptr) return cuGraphLaunch(instance, on);
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  unsigned long long number = 0;
  if (const CUresult wrong = cuStreamGetId(on, &number)) return wrong;
  const hpe::cudart::declared_work declared(number, accesses.data(), accesses.size());
  const CUresult queued = cuGraphLaunch(instance, on);
  if (queued == CUDA_SUCCESS) static_cast<void>(cuStreamSynchronize(on));  // later calls return errors of the work
  return queued;
}

CUresult run(unsigned device, hpeEnqueueFunction function, void* argument, std::span<const hpeAccess> accesses,
             int& result) {
  CUstream runs = nullptr, captured = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec instance = nullptr;
  if (const CUresult wrong = stream_of(device, runs)) return wrong;
  if (const CUresult wrong = cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING)) return wrong;
  CUresult done = cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (done == CUDA_SUCCESS) {
    result = function(captured, argument);
    done = cuStreamEndCapture(captured, &graph);
  }
  if (done == CUDA_SUCCESS && result == 0) done = cuGraphInstantiateWithFlags(&instance, graph, 0);
  if (done == CUDA_SUCCESS && result == 0) done = launch(instance, runs, accesses);
  if (instance != nullptr) cuGraphExecDestroy(instance);
  if (graph != nullptr) cuGraphDestroy(graph);
  cuStreamDestroy_v2(captured);
  return done;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const char* hpe_enqueue_on_soft_devices(
    unsigned device, hpeEnqueueFunction function, void* argument, const hpeAccess* accesses, std::size_t count,
    int* result) {
  CUcontext context = nullptr, replaced = nullptr;
  CUdevice ordinal = 0;
  CUresult done = cuInit(0);
  if (done == CUDA_SUCCESS) done = cuDeviceGet(&ordinal, static_cast<int>(device));
  if (done == CUDA_SUCCESS) done = cuDevicePrimaryCtxRetain(&context, ordinal);
  if (done == CUDA_SUCCESS) done = cuCtxPushCurrent_v2(context);
  if (done == CUDA_SUCCESS) {
    done = run(device, function, argument, {accesses, count}, *result);
    cuCtxPopCurrent_v2(&replaced);
  }
  return done == CUDA_SUCCESS ? nullptr : hpe::libcuda::name_of(done);
}
