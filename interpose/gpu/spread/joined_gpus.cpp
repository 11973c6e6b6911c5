#include "interpose/gpu/spread/joined_gpus.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

joined_gpus::joined_gpus(const device::cuda::driver& cu) : cu_(cu) {
  int count = 0;
  if (cu_.cuDeviceGetCount(&count) != CUDA_SUCCESS) return;
  for (int n = 0; n < count; ++n) {
    CUdevice device = 0;
    int maps = 0;
    if (cu_.cuDeviceGet(&device, n) != CUDA_SUCCESS ||
        cu_.cuDeviceGetAttribute(&maps, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) !=
            CUDA_SUCCESS ||
        maps == 0)
      continue;
    if (n > 0 && devices_.empty()) break;  // the program uses device 0, so without device 0 no other GPU can be joined
    if (std::all_of(devices_.begin(), devices_.end(), [&](CUdevice d) { return reach_each_other(d, device); }))
      devices_.push_back(device);
  }
  for (const CUdevice d : devices_) {
    for (const CUdevice other : devices_) {
      int atomics = 0;
      if (d == other) continue;
      atomics_ &= cu_.cuDeviceGetP2PAttribute != nullptr &&
                  cu_.cuDeviceGetP2PAttribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, d, other) ==
                      CUDA_SUCCESS &&
                  atomics != 0;
    }
  }
}

bool joined_gpus::reach_each_other(CUdevice a, CUdevice b) const {
  int there = 0, back = 0;
  return cu_.cuDeviceCanAccessPeer(&there, a, b) == CUDA_SUCCESS && there != 0 &&
         cu_.cuDeviceCanAccessPeer(&back, b, a) == CUDA_SUCCESS && back != 0;
}

CUcontext joined_gpus::retain(unsigned n) const {
  CUcontext made = nullptr;
  cu_.check(cu_.cuDevicePrimaryCtxRetain(&made, devices_[n]), "retaining the context of a GPU");
  return made;
}

void joined_gpus::enter() {
  HPE_REQUIRE(count() == 1 || cu_.cuCtxEnablePeerAccess != nullptr, HPE_ERROR_INITIALIZATION,
              "this CUDA driver has no cuCtxEnablePeerAccess");
  first_ = retain(0);
}

CUcontext joined_gpus::other_context(unsigned n) const {
  const lock_guard lock(others_->guard);
  others_->contexts.resize(devices_.size());
  CUcontext& its = others_->contexts[n];
  if (its == nullptr) its = retain(n);
  return its;
}

void joined_gpus::share_driver_memory() const {
  const device::cuda::uncaptured of_no_stream(cu_);
  for (unsigned n = 0; n < count(); ++n) {
    const entered here(cu_, context(n));
    for (unsigned other = 0; other < count(); ++other) {
      if (other == n) continue;
      const CUresult result = cu_.cuCtxEnablePeerAccess(context(other), 0);
      if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) cu_.check(result, "letting GPUs use each other's memory");
    }
  }
}

void joined_gpus::share_pool(CUmemoryPool pool) const {
  HPE_REQUIRE(cu_.cuMemPoolSetAccess != nullptr, HPE_ERROR_NOT_SUPPORTED, "this CUDA driver has no cuMemPoolSetAccess");
  const device::cuda::uncaptured of_no_stream(cu_);
  std::vector<CUmemAccessDesc> others;
  for (unsigned n = 1; n < count(); ++n) {
    CUmemAccessDesc& access = others.emplace_back();
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = devices_[n];
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  cu_.check(cu_.cuMemPoolSetAccess(pool, others.data(), others.size()), "letting GPUs use the memory of a pool");
}

}  // namespace hpe::cuda_hooks
