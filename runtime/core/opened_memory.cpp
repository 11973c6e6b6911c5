#include "runtime/core/opened_memory.h"

#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::core {

using coherence::region_description;

namespace {

// A granule behind it stays unused, as behind all regions.
std::size_t granules_for(std::uint64_t extent) { return round_up(extent, granule_size) / granule_size + 1; }

}  // namespace

region_description opened_memory::open(std::span<const device::shared_part> parts, std::uint64_t first,
                                       std::uint64_t bytes, std::shared_ptr<const void> lease) {
  region_description what;
  what.kind = coherence::region_kind::host;
  what.homes = {memory::host_home};
  what.first = first;
  what.bytes = first + bytes;
  what.block_size = coherence::choose_block_size(bytes, env_.option.block_size);
  for (const device::shared_part& part : parts) what.extent += part.bytes;
  what.base = addresses_.allocate(granules_for(what.extent));
  HPE_REQUIRE(what.base != nullptr, HPE_ERROR_OUT_OF_MEMORY,
              "no {} bytes of address space are left for memory of other processes (HPE_SEGMENT_SIZE)", what.extent);
  std::vector<std::uint64_t> done;
  try {
    std::byte* at = what.base;
    for (const device::shared_part& part : parts) {
      env_.devices.register_host(at, part.bytes, part.file, static_cast<std::int64_t>(part.offset));
      done.push_back(part.bytes);
      env_.space.map_foreign(at, part.bytes, part.file, part.offset);
      at += part.bytes;
    }
    const std::lock_guard lock(mutex_);
    open_[what.base] = {done, std::move(lease)};
  } catch (...) {
    unmap(what.base, done);
    addresses_.free(what.base, granules_for(what.extent));
    throw;
  }
  return what;
}

void opened_memory::unmap(std::byte* base, std::span<const std::uint64_t> sizes) {
  for (const std::uint64_t bytes : sizes) {
    env_.devices.unregister_host(base, bytes);
    env_.space.unmap_foreign(base, bytes);
    base += bytes;
  }
}

void opened_memory::close(const region_description& what) {
  one it;
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(what.base);
    HPE_INVARIANT(found != open_.end());
    it = std::move(found->second);
    open_.erase(found);
  }
  unmap(what.base, it.sizes);
  addresses_.free(what.base, granules_for(what.extent));
}

}  // namespace hpe::core
