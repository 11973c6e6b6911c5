#include "interpose/gpu/spread/driver_memory.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"

namespace hpe::cuda_hooks {

driver_memory::table::iterator driver_memory::find(CUdeviceptr address) {
  const auto found = known_.upper_bound(address);
  return found != known_.end() && address >= found->second->what.address ? found : known_.end();
}

std::shared_ptr<const driver_memory::found> driver_memory::describe(CUdeviceptr address, std::string& obstacle) {
  if (address == 0) return nullptr;
  {
    const lock_guard lock(mutex_);
    if (const auto known = find(address); known != known_.end()) return known->second;
  }
  unsigned type = 0, managed = 0;
  unsigned long long number = 0;
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr;
  std::array attributes{CU_POINTER_ATTRIBUTE_MEMORY_TYPE,   CU_POINTER_ATTRIBUTE_IS_MANAGED,
                        CU_POINTER_ATTRIBUTE_BUFFER_ID,     CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                        CU_POINTER_ATTRIBUTE_RANGE_SIZE,    CU_POINTER_ATTRIBUTE_CONTEXT,
                        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
  std::array<void*, attributes.size()> values{&type, &managed, &number, &base, &bytes, &context, &pool};
  if (cu_.cuPointerGetAttributes == nullptr ||
      cu_.cuPointerGetAttributes(static_cast<unsigned>(attributes.size()), attributes.data(), values.data(), address) !=
          CUDA_SUCCESS ||
      type == 0) {
    obstacle = "it uses memory that the CUDA driver does not know";
    return nullptr;
  }
  if (managed != 0) {
    obstacle = "it uses managed memory, which moves between GPUs";
    return nullptr;
  }
  if (type == CU_MEMORYTYPE_HOST) return nullptr;
  const bool is_plain = pool == nullptr && context == gpus_.context(0);
  if (!is_plain && (pool == nullptr || pool != default_pool())) {
    obstacle =
        "it uses memory that belongs to another context, is from a pool of the program, or was mapped by the program; "
        "other GPUs may not reach this memory";
    return nullptr;
  }
  const auto result = std::make_shared<found>();
  result->of_pool = !is_plain;
  spread::kernel_array& a = result->what;
  a.address = base != 0 ? base : address;
  a.bytes = bytes;
  a.homes = {{0, bytes, 0}};
  a.may_replicate = false;
  a.version = number;
  const lock_guard lock(mutex_);
  return known_[a.address + std::max<std::size_t>(bytes, 1)] = result;
}

CUmemoryPool driver_memory::default_pool() const {
  CUmemoryPool pool = nullptr;
  if (cu_.cuDeviceGetDefaultMemPool == nullptr || cu_.cuDeviceGetDefaultMemPool(&pool, gpus_.device(0)) != CUDA_SUCCESS)
    return nullptr;
  return pool;
}

std::string driver_memory::share_pool() {
  if (shares_pool_.load(std::memory_order_acquire)) return {};
  try {
    if (const CUmemoryPool pool = default_pool(); pool != nullptr) gpus_.share_pool(pool);
  } catch (const error& e) {
    return fmt::format("it may use memory of the driver's default pool, which other GPUs cannot use: {}", e.what());
  }
  shares_pool_.store(true, std::memory_order_release);
  return {};
}

void driver_memory::forget(CUdeviceptr address) {
  const lock_guard lock(mutex_);
  if (const auto known = find(address); known != known_.end()) known_.erase(known);
}

void driver_memory::forget_all() {
  const lock_guard lock(mutex_);
  known_.clear();
}

}  // namespace hpe::cuda_hooks
