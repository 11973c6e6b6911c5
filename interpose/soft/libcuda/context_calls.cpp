// The functions for contexts, for each thread's stack of contexts, and for peer access.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/stream/stream_table.h"
#include "interpose/soft/libcuda/call.h"
#include "interpose/soft/libcuda/contexts.h"

using namespace hpe::libcuda;
using hpe::cudart::process;
using hpe::cudart::require;

namespace {

/// Returns the context with this handle; the calling thread's current context if the handle is null.
context_table::pointer context_of(CUcontext handle) {
  if (handle != nullptr) return contexts().find(handle);
  auto current = context_table::current();
  require(current != nullptr, cudaErrorDeviceUninitialized);
  return current;
}

CUresult create(const char* function, CUcontext* made, unsigned flags, CUdevice device) {
  return call(function, [&] {
    require(made != nullptr && (flags & ~unsigned{CU_CTX_FLAGS_MASK}) == 0, cudaErrorInvalidValue);
    const auto context = contexts().create(device, flags);
    context_table::push(context);
    *made = handle_of(*context);
  });
}

/// While the object exists, the context with this handle is the calling thread's current context.
class with_context {
 public:
  explicit with_context(CUcontext handle) { context_table::push(context_of(handle)); }
  ~with_context() { context_table::pop(); }
  with_context(const with_context&) = delete;
  with_context& operator=(const with_context&) = delete;
};

}  // namespace

extern "C" {

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return call("cuDevicePrimaryCtxRetain", [&] {
    require(context != nullptr, cudaErrorInvalidValue);
    *context = handle_of(*contexts().retain_primary(device));
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return call_always("cuDevicePrimaryCtxRelease_v2", [&] {
    require_initialized();
    contexts().release_primary(device);
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return call_always("cuDevicePrimaryCtxReset_v2", [&] {
    require_initialized();
    contexts().reset_primary(device);
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return call("cuDevicePrimaryCtxSetFlags_v2", [&] {
    require((flags & ~unsigned{CU_CTX_FLAGS_MASK}) == 0, cudaErrorInvalidValue);
    contexts().primary(device)->set_flags(flags);
    process().devices().set_flags(device, flags);
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return call("cuDevicePrimaryCtxGetState", [&] {
    require(flags != nullptr && active != nullptr, cudaErrorInvalidValue);
    const auto primary = contexts().primary(device);
    *flags = primary->flags();
    *active = primary->is_active() ? 1 : 0;
  });
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext* made, unsigned flags, CUdevice device) {
  return create("cuCtxCreate_v2", made, flags, device);
}

/// Returns CUDA_ERROR_NOT_SUPPORTED if there are affinities, because soft devices cannot limit a context to some of the
/// multiprocessors.
CUresult CUDAAPI cuCtxCreate_v3(CUcontext* made, CUexecAffinityParam* /*affinities*/, int count, unsigned flags,
                                CUdevice device) {
  if (count != 0) return call("cuCtxCreate_v3", [] { require(false, cudaErrorNotSupported); });
  return create("cuCtxCreate_v3", made, flags, device);
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext* made, CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
  if (parameters != nullptr && (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr))
    return call("cuCtxCreate_v4", [] { require(false, cudaErrorNotSupported); });
  return create("cuCtxCreate_v4", made, flags, device);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context) {
  return call_always("cuCtxDestroy_v2", [&] {
    require_initialized();
    contexts().destroy(context);
  });
}

/// Destroys the context, because a context has only one reference: cuCtxAttach is not implemented.
CUresult CUDAAPI cuCtxDetach(CUcontext context) { return cuCtxDestroy_v2(context); }

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
  return call_always("cuCtxPushCurrent_v2", [&] {
    require_initialized();
    context_table::push(contexts().find(context));
  });
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* context) {
  return call_always("cuCtxPopCurrent_v2", [&] {
    require_initialized();
    const auto popped = context_table::pop();
    if (context != nullptr) *context = handle_of(*popped);
  });
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  return call_always("cuCtxSetCurrent", [&] {
    require_initialized();
    context_table::set_current(context != nullptr ? contexts().find(context) : nullptr);
  });
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  return call_always("cuCtxGetCurrent", [&] {
    require_initialized();
    require(context != nullptr, cudaErrorInvalidValue);
    const auto current = context_table::current();
    *context = current != nullptr ? handle_of(*current) : nullptr;
  });
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return in_context("cuCtxGetDevice", [&] { given(device) = context_table::current()->device(); });
}

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  return call("cuCtxGetDevice_v2", [&] { given(device) = context_of(context)->device(); });
}

CUresult CUDAAPI cuCtxGetFlags(unsigned* flags) {
  return in_context("cuCtxGetFlags", [&] { given(flags) = context_table::current()->flags(); });
}

CUresult CUDAAPI cuCtxSetFlags(unsigned flags) {
  return in_context("cuCtxSetFlags", [&] {
    require((flags & ~unsigned{CU_CTX_FLAGS_MASK}) == 0, cudaErrorInvalidValue);
    context_table::current()->set_flags(flags);
  });
}

CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long* id) {
  return call("cuCtxGetId", [&] { given(id) = context_of(context)->id(); });
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  return call("cuCtxGetApiVersion", [&] {
    static_cast<void>(context_of(context));
    given(version) = 3020;  // the version that NVIDIA's drivers have returned since CUDA 3.2
  });
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext context) {
  return call("cuCtxSynchronize_v2", [&] {
    const with_context scope(context);
    return cudaDeviceSynchronize();
  });
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return in_context("cuCtxEnablePeerAccess",
                    [&] { return cudaDeviceEnablePeerAccess(contexts().find(peer)->device(), flags); });
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peer) {
  return in_context("cuCtxDisablePeerAccess",
                    [&] { return cudaDeviceDisablePeerAccess(contexts().find(peer)->device()); });
}

/// On soft devices, a stream belongs to a device and not to a context. So the result is the current context if it
/// belongs to the stream's device, otherwise the primary context of this device.
CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return in_context("cuStreamGetCtx", [&] {
    require(context != nullptr, cudaErrorInvalidValue);
    const int device = process().find_stream(stream)->device();
    const auto current = context_table::current();
    *context = handle_of(current->device() == device ? *current : *contexts().primary(device));
  });
}

/// Returns null as the green context, because hpe has no green contexts.
CUresult CUDAAPI cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return cuStreamGetCtx(stream, context);
}
}
