// The CUDA runtime's functions for devices.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/device/thread_state.h"
#include "interpose/soft/cudart/memory/pool_table.h"
#include "interpose/soft/cudart/stream/capture.h"
#include "interpose/soft/cudart/stream/stream_table.h"

using namespace hpe::cudart;

namespace {

device_table& devices() { return process().devices(); }

template <class T>
T& given(T* pointer) {
  require(pointer != nullptr, cudaErrorInvalidValue);
  return *pointer;
}

/// Returns a score for how well a device matches the properties that the program requests. CUDA's documentation defines
/// no score; it only promises the device that "best matches".
int likeness(const cudaDeviceProp& device, const cudaDeviceProp& wish) {
  return (wish.major == 0 || std::pair(device.major, device.minor) >= std::pair(wish.major, wish.minor) ? 2 : 0) +
         (device.totalGlobalMem >= wish.totalGlobalMem ? 1 : 0);
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaGetDeviceCount(int* count) {
  return api_call_always("cudaGetDeviceCount", [&] { given(count) = devices().count(); });
}

cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  return api_call_always("cudaGetDevice", [&] { given(device) = process().current_device(); });
}

cudaError_t CUDARTAPI cudaSetDevice(int device) {
  return api_call("cudaSetDevice", [&] {
    devices().require_device(device);
    check(::hpeSetDevice(device));
    this_thread().device = device;
    this_thread().uses_device = true;
  });
}

cudaError_t CUDARTAPI cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  return api_call("cudaInitDevice", [&] {
    devices().require_device(device);
    if ((flags & cudaInitDeviceFlagsAreValid) != 0) devices().set_flags(device, device_flags);
  });
}

cudaError_t CUDARTAPI cudaSetValidDevices(int* numbers, int count) {
  return api_call("cudaSetValidDevices", [&] {
    require(count >= 0 && (count == 0 || numbers != nullptr), cudaErrorInvalidValue);
    for (int i = 0; i < count; ++i) devices().require_device(numbers[i]);
  });
}

cudaError_t CUDARTAPI cudaChooseDevice(int* device, const cudaDeviceProp* wish) {
  return api_call("cudaChooseDevice", [&] {
    const cudaDeviceProp& wanted = given(wish);
    given(device) = 0;
    for (int each = 1; each < devices().count(); ++each) {
      if (likeness(devices().properties(each), wanted) > likeness(devices().properties(*device), wanted))
        *device = each;
    }
  });
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return api_call("cudaGetDeviceProperties", [&] { given(properties) = devices().properties(device); });
}

cudaError_t CUDARTAPI cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return api_call("cudaDeviceGetAttribute", [&] { given(value) = devices().attribute(attribute, device); });
}

/// This function and the next one have no effect: soft devices have no L2 cache, and other devices write to their
/// memory without a cache.
cudaError_t CUDARTAPI cudaCtxResetPersistingL2Cache() {
  return api_call("cudaCtxResetPersistingL2Cache", [] { return cudaSuccess; });
}

cudaError_t CUDARTAPI cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget /*target*/,
                                                         cudaFlushGPUDirectRDMAWritesScope /*scope*/) {
  return api_call("cudaDeviceFlushGPUDirectRDMAWrites", [] { return cudaSuccess; });
}

cudaError_t CUDARTAPI cudaDeviceGetTexture1DLinearMaxWidth(std::size_t* width, const cudaChannelFormatDesc* format,
                                                           int device) {
  return api_call("cudaDeviceGetTexture1DLinearMaxWidth", [&] {
    const cudaChannelFormatDesc& f = given(format);
    require(width != nullptr && f.x + f.y + f.z + f.w > 0, cudaErrorInvalidValue);
    *width = static_cast<std::size_t>(devices().attribute(cudaDevAttrMaxTexture1DLinearWidth, device));
  });
}

cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char* text, int size, int device) {
  return api_call("cudaDeviceGetPCIBusId", [&] {
    const cudaDeviceProp& properties = devices().properties(device);
    const std::string id =
        fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
    require(text != nullptr && size > static_cast<int>(id.size()), cudaErrorInvalidValue);
    std::memcpy(text, id.c_str(), id.size() + 1);
  });
}

cudaError_t CUDARTAPI cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return api_call("cudaDeviceGetByPCIBusId", [&] {
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned slot = 0;
    require(device != nullptr && text != nullptr, cudaErrorInvalidValue);
    const bool is_whole = std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) == 3;
    if (!is_whole) {
      domain = 0;
      require(std::sscanf(text, "%x:%x", &bus, &slot) == 2, cudaErrorInvalidValue);
    }
    require(domain == 0 && slot == 0 && bus < static_cast<unsigned>(devices().count()), cudaErrorInvalidDevice);
    *device = static_cast<int>(bus);
  });
}

cudaError_t CUDARTAPI cudaSetDeviceFlags(unsigned flags) {
  return api_call("cudaSetDeviceFlags", [&] {
    require((flags & ~static_cast<unsigned>(cudaDeviceMask)) == 0, cudaErrorInvalidValue);
    devices().set_flags(process().current_device(), flags);
  });
}

cudaError_t CUDARTAPI cudaGetDeviceFlags(unsigned* flags) {
  return api_call("cudaGetDeviceFlags",
                  [&] { given(flags) = devices().flags(process().current_device()) | cudaDeviceMapHost; });
}

/// Only stores the value: soft devices choose the sizes of kernel stacks and heaps themselves.
cudaError_t CUDARTAPI cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  return api_call("cudaDeviceSetLimit", [&] { devices().set_limit(process().current_device(), limit, value); });
}

cudaError_t CUDARTAPI cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  return api_call("cudaDeviceGetLimit", [&] { given(value) = devices().limit(process().current_device(), limit); });
}

cudaError_t CUDARTAPI cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return api_call("cudaDeviceSetCacheConfig", [&] {
    require(config >= cudaFuncCachePreferNone && config <= cudaFuncCachePreferEqual, cudaErrorInvalidValue);
    devices().set_cache_config(process().current_device(), config);
  });
}

cudaError_t CUDARTAPI cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return api_call("cudaDeviceGetCacheConfig",
                  [&] { given(config) = devices().cache_config(process().current_device()); });
}

cudaError_t CUDARTAPI cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return api_call("cudaDeviceGetSharedMemConfig", [&] { given(config) = cudaSharedMemBankSizeFourByte; });
}

/// Has no effect, as on current GPUs.
cudaError_t CUDARTAPI cudaDeviceSetSharedMemConfig(cudaSharedMemConfig /*config*/) {
  return api_call("cudaDeviceSetSharedMemConfig", [&] { devices(); });
}

cudaError_t CUDARTAPI cudaDeviceSynchronize() {
  return api_call("cudaDeviceSynchronize", [&] {
    device_streams& streams = process().streams().of_device(process().current_device());
    require_none_capturing(streams.captures());
    check(streams.synchronize());
    process().pools().release_excess();
  });
}

cudaError_t CUDARTAPI cudaDeviceReset() {
  return api_call_always("cudaDeviceReset", [&] { process().reset(process().current_device()); });
}

cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return api_call("cudaDeviceCanAccessPeer", [&] { given(can) = devices().can_reach(device, peer) ? 1 : 0; });
}

cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return api_call("cudaDeviceEnablePeerAccess", [&] {
    const int device = process().current_device();
    require(flags == 0, cudaErrorInvalidValue);
    devices().require_device(peer);
    require(peer != device, cudaErrorInvalidDevice);
    require(devices().can_reach(device, peer), cudaErrorPeerAccessUnsupported);
    require(devices().set_peer(device, peer, true), cudaErrorPeerAccessAlreadyEnabled);
  });
}

cudaError_t CUDARTAPI cudaDeviceDisablePeerAccess(int peer) {
  return api_call("cudaDeviceDisablePeerAccess", [&] {
    devices().require_device(peer);
    require(devices().set_peer(process().current_device(), peer, false), cudaErrorPeerAccessNotEnabled);
  });
}

cudaError_t CUDARTAPI cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer) {
  return api_call("cudaDeviceGetP2PAttribute", [&] {
    const bool reaches = devices().can_reach(device, peer);
    require(device != peer, cudaErrorInvalidDevice);
    switch (attribute) {
      case cudaDevP2PAttrAccessSupported:
      case cudaDevP2PAttrNativeAtomicSupported: given(value) = reaches ? 1 : 0; break;
      case cudaDevP2PAttrPerformanceRank:
      case cudaDevP2PAttrCudaArrayAccessSupported: given(value) = 0; break;
      default: throw failure(cudaErrorInvalidValue);
    }
  });
}
}
