#include "interpose/soft/cudart/device/properties.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <string>
#include <string_view>

#include "interpose/soft/cudart/device/errors.h"
#include "runtime/base/options.h"

namespace hpe::cudart {

namespace {

constexpr int clock_rate = 1'000'000;  // kHz; a soft device has no clock, but programs divide by this number

constexpr std::size_t KiB = 1024;

void set_memory(cudaDeviceProp& p) {
  p.sharedMemPerBlock = 48 * KiB;
  p.sharedMemPerBlockOptin = 227 * KiB;
  p.sharedMemPerMultiprocessor = 228 * KiB;
  p.reservedSharedMemPerBlock = 1 * KiB;
  p.totalConstMem = 64 * KiB;
  p.memPitch = INT_MAX;
  p.l2CacheSize = static_cast<int>(std::clamp(::sysconf(_SC_LEVEL3_CACHE_SIZE), 1L << 20, static_cast<long>(INT_MAX)));
  p.memoryBusWidth = 64;
  p.canMapHostMemory = 1;
  p.unifiedAddressing = 1;
  p.managedMemory = 1;
  p.concurrentManagedAccess = 1;  // CPU code may touch managed memory while kernels run
  p.memoryPoolsSupported = 1;
  p.memoryPoolSupportedHandleTypes = cudaMemHandleTypePosixFileDescriptor;
  p.hostRegisterSupported = 1;
  p.ipcEventSupported = 1;
}

void set_execution(cudaDeviceProp& p) {
  const compute_capability capability = options::from_environment().capability;
  const std::string_view number = word_of(capability);  // for example "9.0"
  p.major = number.front() - '0';
  p.minor = number.back() - '0';
  p.warpSize = 32;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = INT_MAX;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  p.concurrentKernels = 1;
  p.asyncEngineCount = 2;
  p.streamPrioritiesSupported = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.cooperativeLaunch = 1;
  p.clusterLaunch = capability >= compute_capability::sm_90 ? 1 : 0;
}

void set_textures(cudaDeviceProp& p) {
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
  p.surfaceAlignment = 512;
  p.maxTexture1D = p.maxSurface1D = 32768;
  for (int i = 0; i < 2; ++i) p.maxTexture2D[i] = p.maxSurface2D[i] = 65536;
  for (int i = 0; i < 3; ++i) p.maxTexture3D[i] = p.maxSurface3D[i] = 16384;
  p.maxTexture2DLinear[0] = 131072;
  p.maxTexture2DLinear[1] = 65000;
  p.maxTexture2DLinear[2] = 2097120;
}

}  // namespace

cudaDeviceProp make_properties(const hpeDeviceInfo& info, int device) {
  cudaDeviceProp p{};
  const std::string name = fmt::format("hpe {}", info.name);
  std::copy_n(name.data(), std::min(name.size(), sizeof p.name - 1), static_cast<char*>(p.name));
  fmt::format_to_n(static_cast<char*>(p.uuid.bytes), sizeof p.uuid.bytes, "hpe soft{:8d}", device);
  p.totalGlobalMem = info.memory_total;
  p.multiProcessorCount = static_cast<int>(std::max(info.compute_units, 1U));
  p.pciBusID = device;
  set_memory(p);
  set_execution(p);
  set_textures(p);
  return p;
}

int read_attribute(const cudaDeviceProp& p, cudaDeviceAttr attribute) {
  require(attribute > 0 && attribute < cudaDevAttrMax, cudaErrorInvalidValue);
  switch (attribute) {
#define HPE_CUDART_ATTRIBUTE(name, value) \
  case cudaDevAttr##name:                 \
    return static_cast<int>(value);
#include "interpose/soft/cudart/api/attributes.def"
#undef HPE_CUDART_ATTRIBUTE
    default: return 0;
  }
}

}  // namespace hpe::cudart
