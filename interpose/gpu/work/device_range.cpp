#include "interpose/gpu/work/device_range.h"

namespace hpe::cuda_hooks {

bool is_device_memory(const device::cuda::driver& cu, CUdeviceptr address) {
  unsigned type = 0;
  unsigned managed = 0;
  return cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS &&
         type == CU_MEMORYTYPE_DEVICE &&
         cu.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS && managed == 0;
}

std::optional<device_range> device_range_at(const device::cuda::driver& cu, CUdeviceptr address) {
  device_range found;
  if (!is_device_memory(cu, address) || cu.cuMemGetAddressRange(&found.base, &found.bytes, address) != CUDA_SUCCESS)
    return std::nullopt;
  return found;
}

}  // namespace hpe::cuda_hooks
