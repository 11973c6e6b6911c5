// The stand-in driver's functions for devices, contexts, memory, streams and events.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/interpose/gpu/stand_in/machine.h"

using namespace stand_in;  // NOLINT(google-build-using-namespace): this file is part of that namespace

// ---- devices and contexts ----------------------------------------------------------------------------------------

STAND_IN CUresult cuInit(unsigned) { return COUNT(), CUDA_SUCCESS; }
STAND_IN CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
STAND_IN CUresult cuGetErrorName(CUresult, const char** name) { return *name = "CUDA_ERROR_STAND_IN", CUDA_SUCCESS; }
STAND_IN CUresult cuGetErrorString(CUresult, const char** text) {
  return *text = "an error of the stand-in", CUDA_SUCCESS;
}
STAND_IN CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return *device = ordinal, primary(ordinal) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
STAND_IN CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: *value = 1; break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute, CUdevice, CUdevice) {
  return *value = 1, CUDA_SUCCESS;
}
// STAND_IN_DEVICES sets a smaller number of devices; with STAND_IN_NO_PEERS, the devices cannot access each other's
// memory.
STAND_IN CUresult cuDeviceGetCount(int* count) {
  static const char* const fewer = std::getenv("STAND_IN_DEVICES");
  return *count = fewer != nullptr ? std::atoi(fewer) : device_count, CUDA_SUCCESS;
}
STAND_IN CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  *uuid = {};
  uuid->bytes[0] = static_cast<char>(device + 1);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  static const bool has_peers = std::getenv("STAND_IN_NO_PEERS") == nullptr;
  return *can = has_peers ? 1 : 0, CUDA_SUCCESS;
}

STAND_IN CUresult cuDevicePrimaryCtxRetain(CUcontext* result, CUdevice device) {
  // With STAND_IN_BUSY, another process has device 1 for itself. STAND_IN_CONTEXT_MS: how long the driver makes the
  // context of device 1.
  static const bool is_busy = std::getenv("STAND_IN_BUSY") != nullptr;
  static const char* const slow = std::getenv("STAND_IN_CONTEXT_MS");
  COUNT();
  context* const c = primary(device);
  if (c == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device == 1 && is_busy) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (++c->users == 1 && device == 1) {
    count("contexts of 1");
    if (slow != nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(slow)));
  }
  return *result = handle_of(c), CUDA_SUCCESS;
}
STAND_IN CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  COUNT();
  context* const c = primary(device);
  if (c == nullptr || c->users == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--c->users == 0) end(*c);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  COUNT();
  context* const c = primary(device);
  if (c == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return end(*c), CUDA_SUCCESS;
}
STAND_IN CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return *flags = 0, *active = primary(device)->users > 0 ? 1 : 0, CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxSetCurrent(CUcontext c) {
  auto& stack = context_stack();
  if (!stack.empty()) stack.pop_back();
  if (c != nullptr) stack.push_back(c);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxGetCurrent(CUcontext* c) {
  return *c = context_stack().empty() ? nullptr : context_stack().back(), CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxPushCurrent(CUcontext c) {
  COUNT();
  return context_stack().push_back(c), CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxPopCurrent(CUcontext* c) {
  if (context_stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  return *c = context_stack().back(), context_stack().pop_back(), CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxCreate(CUcontext* made, CUctxCreateParams*, unsigned, CUdevice device) {
  COUNT();
  if (primary(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *made = handle_of(make_context(device));
  return context_stack().push_back(*made), CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxDestroy(CUcontext given) {
  COUNT();
  if (given == nullptr) return CUDA_SUCCESS;
  context& c = *context_of(given);
  if (&c == primary(c.device) || c.users == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context_stack().empty() && context_stack().back() == given) context_stack().pop_back();
  return end(c), CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxGetDevice(CUdevice* device) {
  context* c = nullptr;
  const CUresult result = current(c);
  if (result == CUDA_SUCCESS) *device = c->device;
  return result;
}
STAND_IN CUresult cuCtxSynchronize() {
  COUNT();
  REFUSE();
  context* c = nullptr;
  const CUresult result = current(c);
  if (result != CUDA_SUCCESS) return result;
  if (invalidate_captures(*c)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return wait_for(*c), CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned) {
  COUNT();
  context* c = nullptr;
  const CUresult result = current(c);
  if (result == CUDA_SUCCESS) set_reach(c->device, context_of(peer)->device, true);
  return result;
}
STAND_IN CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  context* c = nullptr;
  const CUresult result = current(c);
  if (result == CUDA_SUCCESS) set_reach(c->device, context_of(peer)->device, false);
  return result;
}
namespace {
std::atomic<float> between_events{0};
thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
}  // namespace
STAND_IN CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return std::swap(*mode, capture_mode), CUDA_SUCCESS;
}

// ---- memory ------------------------------------------------------------------------------------------------------

STAND_IN CUresult cuMemAlloc(CUdeviceptr* result, std::size_t bytes) {
  COUNT();
  context* c = nullptr;
  if (bytes == 0 || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult wrong = current(c); wrong != CUDA_SUCCESS) return wrong;
  return *result = allocate(*c, bytes), CUDA_SUCCESS;
}

STAND_IN CUresult cuMemAllocPitch(CUdeviceptr* result, std::size_t* pitch, std::size_t width, std::size_t rows,
                                  unsigned) {
  COUNT();
  *pitch = (width + 511) / 512 * 512;
  return cuMemAlloc(result, *pitch * rows);
}

STAND_IN CUresult cuMemFree(CUdeviceptr address) {
  COUNT();
  object found;
  if (address == 0) return CUDA_SUCCESS;
  if (is_pinned(address)) return cuMemFreeHost(reinterpret_cast<void*>(address));  // managed memory
  if (!find_object(address, found) || found.mapped) return CUDA_ERROR_INVALID_VALUE;
  wait_for(*found.of);
  return free_memory(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// An allocation from the device's pool takes effect at once. A free waits for all work of the memory's context.
STAND_IN CUresult cuMemAllocAsync(CUdeviceptr* result, std::size_t bytes, CUstream) {
  COUNT();
  context* c = nullptr;
  if (bytes == 0 || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult wrong = current(c); wrong != CUDA_SUCCESS) return wrong;
  return *result = allocate(*c, bytes, true), CUDA_SUCCESS;
}
// The default pool of a device has the address of the device's primary context as handle.
STAND_IN CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  context* const c = primary(device);
  if (pool == nullptr || c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return *pool = reinterpret_cast<CUmemoryPool>(c), CUDA_SUCCESS;
}
// Kernels of the stand-in can use all memory, so this entry only counts its calls.
STAND_IN CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, std::size_t count) {
  COUNT();
  REFUSE();
  return pool == nullptr || access == nullptr || count == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
STAND_IN CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) { return cuMemFree(address); }

STAND_IN CUresult cuMemGetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  COUNT();
  REFUSE();
  object found;
  if (!find_object(address, found)) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = found.base;
  if (bytes != nullptr) *bytes = found.bytes;
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  COUNT();
  object found;
  const bool device = find_object(address, found);
  if (!device && !is_pinned(address)) return CUDA_ERROR_INVALID_VALUE;
  if (!device && attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE) return CUDA_ERROR_NOT_SUPPORTED;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: *static_cast<unsigned*>(data) = found.of_pool ? 0 : 1; break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(data) =
          found.of_pool && !found.mapped ? reinterpret_cast<CUmemoryPool>(found.of) : nullptr;
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *static_cast<unsigned*>(data) = 0; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(data) = found.of->device; break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *static_cast<unsigned long long*>(data) = found.number; break;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(data) = found.of_pool ? nullptr : handle_of(found.of);
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *static_cast<CUdeviceptr*>(data) = found.base; break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *static_cast<std::size_t*>(data) = found.bytes; break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: {
      context* c = nullptr;
      if (const CUresult wrong = current(c); wrong != CUDA_SUCCESS) return wrong;
      *static_cast<unsigned*>(data) = reaches(c->device, found.of->device) ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                                                           : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
      break;
    }
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

// The value of an attribute that the address does not have becomes 0.
STAND_IN CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                         CUdeviceptr address) {
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned n = 0; n < count; ++n) {
    const CUpointer_attribute which = attributes[n];
    if (data[n] == nullptr || which < CU_POINTER_ATTRIBUTE_CONTEXT || which > CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID)
      return CUDA_ERROR_INVALID_VALUE;
    const bool is_narrow = which == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || which == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                           which == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL || which == CU_POINTER_ATTRIBUTE_MAPPED;
    if (cuPointerGetAttribute(data[n], which, address) != CUDA_SUCCESS)
      std::memset(data[n], 0, is_narrow ? sizeof(unsigned) : sizeof(void*));
  }
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuMemHostAlloc(void** result, std::size_t bytes, unsigned) {
  COUNT();
  context* c = nullptr;
  if (const CUresult wrong = current(c); wrong != CUDA_SUCCESS) return wrong;
  return *result = allocate_pinned(*c, bytes), CUDA_SUCCESS;
}

STAND_IN CUresult cuMemAllocHost(void** result, std::size_t bytes) { return cuMemHostAlloc(result, bytes, 0); }
// The stand-in's managed memory is pinned memory.
STAND_IN CUresult cuMemAllocManaged(CUdeviceptr* result, std::size_t bytes, unsigned) {
  COUNT();
  return cuMemHostAlloc(reinterpret_cast<void**>(result), bytes, 0);
}
STAND_IN CUresult cuMemHostGetDevicePointer(CUdeviceptr* result, void* address, unsigned) {
  COUNT();
  *result = number_of(address);
  return is_pinned(*result) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

STAND_IN CUresult cuMemFreeHost(void* address) {
  COUNT();
  for (int d = 0; d < device_count; ++d) wait_for(*primary(d));
  return free_pinned(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

STAND_IN CUresult cuMemHostRegister(void* address, std::size_t bytes, unsigned) {
  COUNT();
  context* c = nullptr;
  if (const CUresult wrong = current(c); wrong != CUDA_SUCCESS) return wrong;
  return register_pinned(*c, address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}
STAND_IN CUresult cuMemHostUnregister(void* address) {
  COUNT();
  return unregister_pinned(address) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

// The functions that share memory with other processes or APIs.
STAND_IN CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  return COUNT(), share_object(address, *handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
STAND_IN CUresult cuIpcOpenMemHandle(CUdeviceptr* result, CUipcMemHandle handle, unsigned) {
  COUNT();
  context* c = nullptr;
  if (const CUresult wrong = current(c); wrong != CUDA_SUCCESS) return wrong;
  static constexpr CUipcMemHandle of_nobody{};
  if (std::memcmp(&handle, &of_nobody, sizeof handle) == 0) return cuMemAlloc(result, std::size_t{1} << 20);
  *result = open_object(*c, handle);
  return *result != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
STAND_IN CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  COUNT();
  for (int d = 0; d < device_count; ++d) wait_for(*primary(d));
  return close_object(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
STAND_IN CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* result, CUexternalMemory,
                                                  const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* what) {
  COUNT();
  return cuMemAlloc(result, what->size);
}

// The stand-in shares no allocations by handles: an export writes no handle, and an import returns an arbitrary number.
STAND_IN CUresult cuMemExportToShareableHandle(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                                               unsigned long long) {
  return COUNT(), CUDA_SUCCESS;
}
STAND_IN CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void*,
                                                 CUmemAllocationHandleType) {
  return COUNT(), *handle = 77, CUDA_SUCCESS;
}
// ---- streams and events ------------------------------------------------------------------------------------------

STAND_IN CUresult cuStreamCreate(CUstream* result, unsigned flags) {
  context* c = nullptr;
  if (const CUresult wrong = current(c); wrong != CUDA_SUCCESS) return wrong;
  *result = reinterpret_cast<CUstream>(
      make_stream(*c, (flags & CU_STREAM_NON_BLOCKING) != 0 ? stream_kind::non_blocking : stream_kind::blocking));
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuStreamCreateWithPriority(CUstream* result, unsigned flags, int) {
  COUNT();
  return cuStreamCreate(result, flags);
}
STAND_IN CUresult cuStreamDestroy(CUstream given) {
  COUNT();
  stream* s = nullptr;
  const CUresult result = find(given, s);
  if (result == CUDA_SUCCESS) s->destroyed = true;
  return result;
}
STAND_IN CUresult cuStreamGetCtx(CUstream given, CUcontext* owner) {
  stream* s = nullptr;
  const CUresult result = find(given, s);
  if (result == CUDA_SUCCESS) *owner = handle_of(s->of);
  return result;
}
STAND_IN CUresult cuStreamGetFlags(CUstream given, unsigned* flags) {
  stream* s = nullptr;
  const CUresult result = find(given, s);
  if (result == CUDA_SUCCESS) *flags = s->kind == stream_kind::non_blocking ? CU_STREAM_NON_BLOCKING : 0;
  return result;
}
STAND_IN CUresult cuLaunchHostFunc(CUstream given, CUhostFn function, void* argument) {
  COUNT();
  stream* s = nullptr;
  const CUresult result = find(given, s);
  if (result == CUDA_SUCCESS) add(*s, [=] { function(argument); });
  return result;
}
STAND_IN CUresult cuStreamAddCallback(CUstream given, CUstreamCallback function, void* argument, unsigned) {
  COUNT();
  stream* s = nullptr;
  const CUresult result = find(given, s);
  if (result == CUDA_SUCCESS) add(*s, [=] { function(given, CUDA_SUCCESS, argument); });
  return result;
}
STAND_IN CUresult cuStreamIsCapturing(CUstream given, CUstreamCaptureStatus* status) {
  COUNT();
  stream* s = nullptr;
  const CUresult result = find(given, s);
  if (result == CUDA_SUCCESS) *status = static_cast<CUstreamCaptureStatus>(s->capture.load());
  return result;
}
STAND_IN CUresult cuStreamSynchronize(CUstream given) {
  COUNT();
  REFUSE();
  stream* s = nullptr;
  if (const CUresult wrong = find(given, s); wrong != CUDA_SUCCESS) return wrong;
  if (s->is_recording()) {
    s->capture = capture_state::invalidated;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  s->work.wait(s->work.last());
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuStreamQuery(CUstream given) {
  COUNT();
  stream* s = nullptr;
  if (const CUresult wrong = find(given, s); wrong != CUDA_SUCCESS) return wrong;
  return s->work.reached(s->work.last()) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
STAND_IN CUresult cuStreamWaitEvent(CUstream given, CUevent what, unsigned) {
  COUNT();
  REFUSE();
  stream* s = nullptr;
  event* e = nullptr;
  if (const CUresult wrong = find(given, s); wrong != CUDA_SUCCESS) return wrong;
  if (const CUresult wrong = find(what, e); wrong != CUDA_SUCCESS) return wrong;
  queue* const q = e->in;
  if (q != nullptr) add(*s, [q, number = e->number.load()] { q->wait(number); });
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuEventCreate(CUevent* result, unsigned) {
  COUNT();
  REFUSE();
  context* c = nullptr;
  if (const CUresult wrong = current(c); wrong != CUDA_SUCCESS) return wrong;
  return *result = reinterpret_cast<CUevent>(make_event(*c)), CUDA_SUCCESS;
}
STAND_IN CUresult cuEventDestroy(CUevent given) {
  COUNT();
  event* e = nullptr;
  const CUresult result = find(given, e);
  if (result == CUDA_SUCCESS) e->destroyed = true;
  return result;
}
STAND_IN CUresult cuEventRecord(CUevent given, CUstream in) {
  COUNT();
  REFUSE();
  stream* s = nullptr;
  event* e = nullptr;
  if (const CUresult wrong = find(in, s); wrong != CUDA_SUCCESS) return wrong;
  if (const CUresult wrong = find(given, e); wrong != CUDA_SUCCESS) return wrong;
  if (s->of != e->of) return CUDA_ERROR_INVALID_HANDLE;
  e->captured = s->is_recording();
  if (e->captured) count("cuEventRecord in a capture");
  e->number = add(*s, [] {});
  e->in = &s->work;
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuEventElapsedTime(float* ms, CUevent, CUevent) { return *ms = between_events, CUDA_SUCCESS; }
STAND_IN void stand_in_take(float milliseconds) { between_events = milliseconds; }
// While a stream of a primary context is captured, only threads with the capture mode "relaxed" may make this call. In
// other threads, the call fails and invalidates the captures.
STAND_IN CUresult cuEventQuery(CUevent given) {
  COUNT();
  event* e = nullptr;
  bool ends_captures = false;
  for (int d = 0; d < device_count && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED; ++d)
    ends_captures |= invalidate_captures(*primary(d));
  if (ends_captures) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (const CUresult wrong = find(given, e); wrong != CUDA_SUCCESS) return wrong;
  if (e->captured) return CUDA_ERROR_CAPTURED_EVENT;
  queue* const q = e->in;
  return q == nullptr || q->reached(e->number) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
STAND_IN CUresult cuEventSynchronize(CUevent given) {
  event* e = nullptr;
  if (const CUresult wrong = find(given, e); wrong != CUDA_SUCCESS) return wrong;
  if (e->captured) return CUDA_ERROR_CAPTURED_EVENT;
  if (queue* const q = e->in) q->wait(e->number);
  return CUDA_SUCCESS;
}
