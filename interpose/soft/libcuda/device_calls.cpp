// The functions for devices and their attributes.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/libcuda/call.h"

using namespace hpe::libcuda;
using hpe::cudart::process;
using hpe::cudart::require;

namespace {

hpe::cudart::device_table& devices() { return process().devices(); }

/// Returns the value of an attribute that only the driver has. memory/virtual_memory_management.cpp implements mapped
/// memory.
int attribute_of(CUdevice_attribute attribute, int device) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR: return 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED: return 0;
    default: return devices().attribute(static_cast<cudaDeviceAttr>(attribute), device);
  }
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return call("cuDeviceGet", [&] {
    devices().require_device(ordinal);
    given(device) = ordinal;
  });
}

CUresult CUDAAPI cuDeviceGetName(char* name, int size, CUdevice device) {
  return call("cuDeviceGetName", [&] {
    require(name != nullptr && size > 0, cudaErrorInvalidValue);
    const char* const whole = devices().properties(device).name;
    const std::size_t fits = std::min(std::strlen(whole), static_cast<std::size_t>(size) - 1);
    std::memcpy(name, whole, fits);
    name[fits] = '\0';
  });
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return call("cuDeviceGetUuid_v2", [&] {
    static_assert(sizeof *uuid == sizeof(cudaUUID_t));
    std::memcpy(&given(uuid), &devices().properties(device).uuid, sizeof *uuid);
  });
}

CUresult CUDAAPI cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  return call("cuDeviceTotalMem_v2", [&] { given(bytes) = devices().properties(device).totalGlobalMem; });
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return call("cuDeviceGetAttribute", [&] {
    devices().require_device(device);
    given(value) = attribute_of(attribute, device);
  });
}

CUresult CUDAAPI cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return call("cuDeviceComputeCapability", [&] {
    given(major) = devices().properties(device).major;
    given(minor) = devices().properties(device).minor;
  });
}

CUresult CUDAAPI cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  return call("cuDeviceGetProperties", [&] {
    const cudaDeviceProp& p = devices().properties(device);
    CUdevprop& out = given(properties);
    out = {};
    out.maxThreadsPerBlock = p.maxThreadsPerBlock;
    std::copy_n(p.maxThreadsDim, 3, out.maxThreadsDim);
    std::copy_n(p.maxGridSize, 3, out.maxGridSize);
    out.sharedMemPerBlock = static_cast<int>(p.sharedMemPerBlock);
    out.totalConstantMemory = static_cast<int>(p.totalConstMem);
    out.SIMDWidth = p.warpSize;
    out.memPitch = static_cast<int>(p.memPitch);
    out.regsPerBlock = p.regsPerBlock;
    out.clockRate = attribute_of(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device);
    out.textureAlign = static_cast<int>(p.textureAlignment);
  });
}

/// Returns 0, because a process cannot limit its kernels to a part of a soft device.
CUresult CUDAAPI cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType /*type*/, CUdevice device) {
  return call("cuDeviceGetExecAffinitySupport", [&] {
    devices().require_device(device);
    given(supported) = 0;
  });
}
}
