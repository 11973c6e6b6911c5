// The CUDA runtime's functions for events.

#include <cuda_runtime_api.h>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/memory/pool_table.h"
#include "interpose/soft/cudart/stream/capture.h"
#include "interpose/soft/cudart/stream/event.h"

using namespace hpe::cudart;

namespace {

constexpr unsigned all_flags = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* made, unsigned flags) {
  return api_call(__func__, [&] {
    require(made != nullptr && (flags & ~all_flags) == 0, cudaErrorInvalidValue);
    require((flags & cudaEventInterprocess) == 0 || (flags & cudaEventDisableTiming) != 0, cudaErrorInvalidValue);
    require(!in_host_function(), cudaErrorNotPermitted);
    context& cuda = process();
    auto shared = (flags & cudaEventInterprocess) != 0 ? shared_event::create() : nullptr;
    *made = cuda.events().create(cuda.current_device(), flags, std::move(shared));
  });
}

cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t* made) { return cudaEventCreateWithFlags(made, cudaEventDefault); }

cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t handle) {
  return api_call(__func__, [&] { process().events().destroy(handle); });
}

cudaError_t CUDARTAPI cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t where, unsigned flags) {
  return api_call(__func__,
                  [&] { record_event(*process().find_stream(where), handle, process().events().find(handle), flags); });
}

cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t handle, cudaStream_t where) {
  return cudaEventRecordWithFlags(handle, where, cudaEventRecordDefault);
}

cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t where, cudaEvent_t handle, unsigned flags) {
  return api_call(
      __func__, [&] { wait_for_event(*process().find_stream(where), handle, process().events().find(handle), flags); });
}

cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t handle) {
  return api_call(__func__, [&] { return process().events().find(handle)->query(); });
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t handle) {
  return api_call(__func__, [&] {
    check(process().events().find(handle)->synchronize());
    process().pools().release_excess();
  });
}

cudaError_t CUDARTAPI cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return api_call(__func__, [&] {
    require(milliseconds != nullptr, cudaErrorInvalidValue);
    *milliseconds = elapsed_milliseconds(*process().events().find(from), *process().events().find(to));
  });
}
}
