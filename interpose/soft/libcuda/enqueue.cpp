// Work that functions of the program queue through hpeEnqueue (runtime/core/api/soft_cuda.h). As on GPUs, the work is
// captured while the function runs, and runs afterwards.
#include <cuda.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <span>

#include "hpe/announce.h"
#include "interpose/soft/cudart/check/declared_work.h"
#include "interpose/soft/cudart/stream/checked_work.h"
#include "interpose/soft/libcuda/call.h"

namespace {

// The streams on which the work runs, one for each device, so that it runs in the order of the calls.
class work_streams {
 public:
  // Creates the stream at the first call, and after a reset of the device.
  CUresult get(unsigned device, CUstream& stream) {
    const std::lock_guard lock(mutex_);
    if (!exists(device))
      if (const CUresult wrong = cuStreamCreate(&all_.at(device), CU_STREAM_NON_BLOCKING)) return wrong;
    stream = all_.at(device);
    return CUDA_SUCCESS;
  }

  // Returns null if the device has no stream.
  CUstream find(unsigned device) {
    const std::lock_guard lock(mutex_);
    return exists(device) ? all_.at(device) : nullptr;
  }

 private:
  bool exists(unsigned device) const {
    unsigned flags = 0;
    return all_.at(device) != nullptr && cuStreamGetFlags(all_[device], &flags) == CUDA_SUCCESS;
  }

  std::mutex mutex_;
  std::array<CUstream, 64> all_{};
};
work_streams streams;

// Runs the instance and compares its accesses with the declared ones, which needs its end.
CUresult launch_checked(CUgraphExec instance, CUstream on, std::span<const hpeAccess> accesses) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  unsigned long long number = 0;
  if (const CUresult wrong = cuStreamGetId(on, &number)) return wrong;
  const hpe::cudart::declared_work declared(number, accesses.data(), accesses.size());
  const CUresult queued = cuGraphLaunch(instance, on);
  if (queued == CUDA_SUCCESS) static_cast<void>(cuStreamSynchronize(on));  // later calls return errors of the work
  return queued;
}

// Runs the instance. hpe waits for its end before it frees or otherwise uses the memory that the call declares, which
// may have other homes than the memory for which the driver announces kernels.
CUresult launch(CUgraphExec instance, CUstream on, std::uint64_t homes, std::span<const hpeAccess> accesses) {
  if (hpe::cudart::checker() != nullptr) return launch_checked(instance, on, accesses);
  hpeAnnouncement announced = nullptr;
  if (hpeAnnounce(&announced, homes, accesses.data(), accesses.size()) != HPE_SUCCESS)
    return cuGraphLaunch(instance, on);  // a device is lost, as the work will tell
  const CUresult queued = cuGraphLaunch(instance, on);
  const auto end = reinterpret_cast<CUstreamCallback>(&hpeAnnouncedEndOnStream);
  if (queued == CUDA_SUCCESS && cuStreamAddCallback(on, end, announced, 0) == CUDA_SUCCESS) return queued;
  if (queued == CUDA_SUCCESS) static_cast<void>(cuStreamSynchronize(on));
  hpeAnnouncedEnd(announced);
  return queued;
}

CUresult run(unsigned device, hpeEnqueueFunction function, void* argument, std::uint64_t homes,
             std::span<const hpeAccess> accesses, int& result) {
  CUstream runs = nullptr, captured = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec instance = nullptr;
  if (const CUresult wrong = streams.get(device, runs)) return wrong;
  if (const CUresult wrong = cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING)) return wrong;
  CUresult done = cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (done == CUDA_SUCCESS) {
    result = function(captured, argument);
    done = cuStreamEndCapture(captured, &graph);
  }
  if (done == CUDA_SUCCESS && result == 0) done = cuGraphInstantiateWithFlags(&instance, graph, 0);
  if (done == CUDA_SUCCESS && result == 0) done = launch(instance, runs, homes, accesses);
  if (instance != nullptr) cuGraphExecDestroy(instance);
  if (graph != nullptr) cuGraphDestroy(graph);
  cuStreamDestroy_v2(captured);
  return done;
}

// Calls the function with the device's context current.
template <class Function>
CUresult in_context_of(unsigned device, const Function& function) {
  CUcontext context = nullptr, replaced = nullptr;
  CUdevice ordinal = 0;
  CUresult done = cuInit(0);
  if (done == CUDA_SUCCESS) done = cuDeviceGet(&ordinal, static_cast<int>(device));
  if (done == CUDA_SUCCESS) done = cuDevicePrimaryCtxRetain(&context, ordinal);
  if (done == CUDA_SUCCESS) done = cuCtxPushCurrent_v2(context);
  if (done != CUDA_SUCCESS) return done;
  done = function();
  cuCtxPopCurrent_v2(&replaced);
  return done;
}

const char* error_of(CUresult done) { return done == CUDA_SUCCESS ? nullptr : hpe::libcuda::name_of(done); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const char* hpe_enqueue_on_soft_devices(
    unsigned device, hpeEnqueueFunction function, void* argument, std::uint64_t homes, const hpeAccess* accesses,
    std::size_t count, int* result) {
  return error_of(in_context_of(device, [&] {
    return run(device, function, argument, homes, {accesses, count}, *result);
  }));
}

extern "C" __attribute__((visibility("default"))) const char* hpe_synchronize_on_soft_devices(unsigned device) {
  return error_of(in_context_of(device, [&] {
    const CUstream stream = streams.find(device);
    return stream == nullptr ? CUDA_SUCCESS : cuStreamSynchronize(stream);
  }));
}
