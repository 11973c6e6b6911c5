#include "runtime/core/operations/launch_uses.h"

#include <algorithm>
#include <cstring>

namespace hpe::core {

namespace {

struct array {
  allocation where;
  bool is_written = false;
};

// Nothing if a pointer leads nowhere: the kernel uses an array, but perhaps not one that contains the address.
bool find_arrays(const allocator& memory, const spread::kernel_model& kernel, std::span<const std::byte> parameters,
                 std::vector<array>& to) {
  for (const spread::kernel_model::pointer& p : kernel.pointers()) {
    const void* pointer = nullptr;
    if (p.offset + sizeof pointer > parameters.size()) return false;
    std::memcpy(&pointer, parameters.data() + p.offset, sizeof pointer);
    const allocation found = memory.find(pointer);
    if (found.region == nullptr && memory.is_in_space(pointer)) return false;
    if (found.region == nullptr) continue;
    const auto known = std::ranges::find(to, found.base, [](const array& a) { return a.where.base; });
    if (known == to.end())
      to.push_back({found, p.is_written});
    else
      known->is_written |= p.is_written;
  }
  return true;
}

}  // namespace

void narrow(const allocator& memory, const spread::kernel_model& kernel, std::span<const std::byte> parameters,
            bool& everything, std::vector<hpeAccess>& accesses) {
  std::vector<array> arrays;
  if (!kernel.knows_writes() || (everything && !kernel.knows_memory()) ||
      !find_arrays(memory, kernel, parameters, arrays))
    return;
  if (everything) {
    accesses.clear();
    for (const array& a : arrays) accesses.push_back({a.where.base, 0, a.is_written ? HPE_INOUT : HPE_IN});
    everything = false;
    return;
  }
  const auto overlaps = [](const hpeAccess& access, const array& a) {
    const auto* const begin = static_cast<const std::byte*>(access.address);
    return begin < a.where.base + a.where.bytes && (access.size == 0 || a.where.base < begin + access.size);
  };
  std::erase_if(accesses, [&](hpeAccess& access) {
    const auto uses = [&](const array& a) { return overlaps(access, a); };
    if (kernel.knows_memory() && std::ranges::none_of(arrays, uses)) return true;
    if (std::ranges::none_of(arrays, [&](const array& a) { return a.is_written && overlaps(access, a); }))
      access.mode = HPE_IN;
    return false;
  });
}

}  // namespace hpe::core
