#include "interpose/soft/cudart/cuda12/structures.h"

namespace hpe::cudart::cuda12 {

namespace {

/// A run of members of cudaDeviceProp that are consecutive in both versions of the structure.
struct run {
  std::size_t at;  // the offset of the run in CUDA 12's structure
  // The offset of the run in CUDA 13's structure; `end` is the offset after the run in that structure.
  std::size_t first;
  std::size_t end;
};

#define HPE_AT(member) offsetof(cudaDeviceProp, member)
constexpr std::array runs{
    run{0, 0, HPE_AT(maxGridSize) + sizeof(cudaDeviceProp::maxGridSize)},
    run{352, HPE_AT(totalConstMem), HPE_AT(multiProcessorCount)},
    run{388, HPE_AT(multiProcessorCount), HPE_AT(integrated)},
    run{396, HPE_AT(integrated), HPE_AT(maxTexture1D)},
    run{408, HPE_AT(maxTexture1D), HPE_AT(maxTexture2D)},
    run{420, HPE_AT(maxTexture2D), HPE_AT(surfaceAlignment)},
    run{568, HPE_AT(surfaceAlignment), HPE_AT(memoryBusWidth)},
    run{612, HPE_AT(memoryBusWidth), HPE_AT(sharedMemPerMultiprocessor)},
    run{640, HPE_AT(sharedMemPerMultiprocessor), HPE_AT(pageableMemoryAccess)},
    run{672, HPE_AT(pageableMemoryAccess), HPE_AT(cooperativeLaunch) + sizeof(int)},
    run{696, HPE_AT(sharedMemPerBlockOptin), HPE_AT(deviceNumaConfig)},
};
#undef HPE_AT

}  // namespace

device_properties::device_properties(const cudaDeviceProp& from) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&from);
  for (const run& each : runs) std::memcpy(bytes_.data() + each.at, bytes + each.first, each.end - each.first);
}

cudaDeviceProp device_properties::as_cuda13() const {
  cudaDeviceProp result{};
  auto* const bytes = reinterpret_cast<std::byte*>(&result);
  for (const run& each : runs) std::memcpy(bytes + each.first, bytes_.data() + each.at, each.end - each.first);
  return result;
}

}  // namespace hpe::cudart::cuda12
