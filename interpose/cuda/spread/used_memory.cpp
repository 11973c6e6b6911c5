#include "interpose/cuda/spread/used_memory.h"

#include <algorithm>
#include <array>

namespace hpe::cuda_hooks {

const spread::allocation* used_memory::describe(CUdeviceptr address, std::string& obstacle) {
  if (address == 0) return nullptr;
  if (const dealt_memory::range* const r = dealt_.find(address)) return describe_range(*r);
  return describe_other(address, obstacle);
}

const spread::allocation* used_memory::describe_range(const dealt_memory::range& r) {
  spread::allocation& a = of_ranges_[r.base];
  const bool is_replicated = copies_.are_valid(r);
  const bool may_replicate = keeps_copies_ && !r.has_no_replica;
  const std::uint64_t version = r.homes << 3U | (std::uint64_t{r.is_empty} << 2U) |
                                (std::uint64_t{is_replicated} << 1U) | std::uint64_t{may_replicate};
  if (a.version == version) return &a;
  a.address = r.base;
  a.bytes = r.extent;
  a.granule = dealt_.granule();
  a.homes.clear();
  for (const dealt_memory::piece& p : r.pieces) {
    const auto home = static_cast<spread::device_number>(p.gpu);
    if (!a.homes.empty() && a.homes.back().home == home) {
      a.homes.back().last = p.offset + p.bytes;
    } else {
      a.homes.push_back({p.offset, p.offset + p.bytes, home});
    }
  }
  a.is_empty = r.is_empty;
  a.is_replicated = is_replicated;
  a.may_replicate = may_replicate;
  a.version = version;
  return &a;
}

// Memory that the driver has allocated for the program stays where it is.
const spread::allocation* used_memory::describe_other(CUdeviceptr address, std::string& obstacle) {
  if (const auto known = others_.upper_bound(address); known != others_.end() && address >= known->second.address)
    return &known->second;
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
  CUmemoryPool reachable = nullptr;
  if (cu_.cuDeviceGetDefaultMemPool != nullptr) (void)cu_.cuDeviceGetDefaultMemPool(&reachable, gpus_.device(0));
  const bool is_plain = pool == nullptr && context == gpus_.context(0);
  if (!is_plain && (pool == nullptr || pool != reachable)) {
    obstacle =
        "it uses memory of another context, of a pool of the program or of its own mapping, which other GPUs may "
        "not reach";
    return nullptr;
  }
  if (base == 0) base = address;
  spread::allocation& a = others_[base + std::max<std::size_t>(bytes, 1)];
  a.address = base;
  a.bytes = bytes;
  a.homes = {{0, bytes, 0}};
  a.may_replicate = false;
  a.version = number;
  return &a;
}

}  // namespace hpe::cuda_hooks
