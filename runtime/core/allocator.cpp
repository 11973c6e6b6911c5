#include "runtime/core/allocator.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/core/device_work.h"
#include "runtime/fault/explain.h"
#include "runtime/memory/distribution.h"

// A region exists for others from the moment the directory names it (last step of make_region) until `alive` is
// cleared (first step of remove_region). Its address space is handed out again after its backing is gone.

namespace hpe::core {

using coherence::block_state;
using coherence::byte_range;
using coherence::point_set;
using coherence::region;
using coherence::region_description;
using coherence::region_kind;
using memory::segment_kind;

namespace {

// Address space behind each region that nobody gets. Accesses past an end hit nothing, and the mappings of neighbours
// are apart, so that protecting a whole region never splits one.
constexpr std::size_t guard = 1;

// An eighth of the machine's memory.
std::uint64_t most_to_keep() { return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * os::page_size() / 8; }

void require_unexported(const region& r, byte_range bytes) {
  const bool exported = std::any_of(r.exports.begin(), r.exports.end(),
                                    [&](const byte_range& e) { return e.begin < bytes.end && bytes.begin < e.end; });
  HPE_REQUIRE(!exported, HPE_ERROR_INVALID_ARGUMENT,
              "the allocation at {} is exported to other processes; hpeExportEnd comes before hpeFree",
              static_cast<void*>(r.is.base + bytes.begin));
}

std::size_t granules_for(std::uint64_t bytes) { return round_up(bytes, granule_size) / granule_size; }

}  // namespace

allocator::allocator(const environment& env, node::exporter& others, memory::segment_allocator& foreign)
    : env_(env),
      others_(others),
      backing_(env.devices, env.space),
      mover_(env, backing_, others),
      opened_(env, foreign),
      kept_(env.space, env.devices, std::min(env.option.kept_memory, most_to_keep())),
      host_segment_(env.space.segment_begin(segment_kind::host), env.space.layout().segment_size / granule_size),
      striped_segment_(env.space.segment_begin(segment_kind::striped), env.space.layout().segment_size / granule_size) {
  for (unsigned d = 0; d < env.devices.size(); ++d) {
    device_segments_.push_back(std::make_unique<memory::segment_allocator>(
        env.space.segment_begin(segment_kind::device, d), env.space.layout().segment_size / granule_size));
    pools_.push_back(std::make_unique<pool>());
    pools_.back()->kind = region_kind::device;
    pools_.back()->home = d;
  }
  pools_.push_back(std::make_unique<pool>());
  pools_.back()->kind = region_kind::host;
  pools_.back()->home = memory::host_home;
}

memory::segment_allocator& allocator::segment_of(const std::byte* address) {
  const memory::segment where = env_.space.segment_of(address);
  switch (where.kind) {
    case segment_kind::device: return *device_segments_[where.device];
    case segment_kind::host: return host_segment_;
    case segment_kind::striped: return striped_segment_;
    case segment_kind::runtime:
    case segment_kind::foreign: break;
  }
  HPE_THROW(HPE_ERROR_INTERNAL, "defect in hpe: a region in a segment that has none");
}

std::byte* allocator::allocate(std::size_t bytes, unsigned device) {
  HPE_REQUIRE(!env_.devices.at(device).lost(), HPE_ERROR_DEVICE_LOST, "device {} is lost and gives no memory", device);
  if (bytes <= memory::small_objects::largest) return allocate_small(bytes, *pools_[device]);
  region_description what;
  what.kind = region_kind::device;
  what.homes = {static_cast<std::uint16_t>(device)};
  return make_region(bytes, std::move(what), *device_segments_[device]);
}

std::byte* allocator::allocate_host(std::size_t bytes) {
  if (bytes <= memory::small_objects::largest) return allocate_small(bytes, *pools_.back());
  region_description what;
  what.kind = region_kind::host;
  what.homes = {memory::host_home};
  return make_region(bytes, std::move(what), host_segment_);
}

std::byte* allocator::allocate_striped(std::size_t bytes, const hpeDistribution* distribution) {
  require_size(bytes);
  region_description what;
  what.kind = region_kind::striped;
  what.homes = memory::distribute(distribution, granules_for(bytes), env_.devices.size());
  return make_region(bytes, std::move(what), striped_segment_);
}

void allocator::require_size(std::size_t bytes) const {
  HPE_REQUIRE(bytes != 0, HPE_ERROR_INVALID_ARGUMENT, "an allocation of 0 bytes was asked for; the smallest is 1");
  HPE_REQUIRE(bytes <= env_.space.layout().segment_size, HPE_ERROR_OUT_OF_MEMORY,
              "{} bytes were asked for; an allocation may have {} (HPE_SEGMENT_SIZE)", bytes,
              env_.space.layout().segment_size);
}

std::byte* allocator::make_region(std::size_t bytes, region_description what, memory::segment_allocator& segment) {
  require_size(bytes);
  const std::size_t granules = granules_for(bytes);
  const std::size_t with_guard = granules + guard;
  what.bytes = bytes;
  what.extent = round_up(bytes, os::page_size());
  what.block_size = coherence::choose_block_size(bytes, env_.option.block_size);
  const bool reuse = what.kind != region_kind::host;
  const std::optional<std::byte*> had = reuse ? kept_.take(segment, what.extent) : std::nullopt;
  what.base = had ? *had : segment.allocate(with_guard);
  if (what.base == nullptr) {
    kept_.clear();
    what.base = segment.allocate(with_guard);
  }
  HPE_REQUIRE(what.base != nullptr, HPE_ERROR_OUT_OF_MEMORY,
              "no {} bytes of address space in a row are left in the segment of {} bytes (HPE_SEGMENT_SIZE)", bytes,
              env_.space.layout().segment_size);
  std::byte* base = what.base;
  bool backed = false;
  try {
    backing_.give(what);
    backed = true;
    if (!had) env_.space.map_view(base, what.extent, os::access::none);
    publish(what, had.has_value());
  } catch (...) {
    if (backed) backing_.take(what);
    had ? kept_.drop({&segment, base, what.extent, with_guard}) : segment.free(base, with_guard);
    throw;
  }
  return base;
}

void allocator::publish(const region_description& what, bool at_home) {
  region& r = env_.regions.take(what.homes[0]);
  {
    const std::lock_guard lock(r.mutex);
    std::uint64_t ahead = env_.option.prefetch_window;
    if (what.kind != region_kind::host) ahead = std::min(ahead, env_.devices.at(what.homes[0]).info().most_ahead);
    r.begin(what, ahead, env_.option.rolling_window);
    if (at_home) r.begin_at_home();
  }
  env_.directory.assign(what.base, granules_for(what.bytes), {r.id, what.homes[0], 0});
  if (what.homes.size() > 1)
    for (std::size_t g = 0; g < what.homes.size(); ++g)
      env_.directory.set_home(what.base + g * granule_size, 1, what.homes[g]);
}

std::byte* allocator::adopt(std::span<const device::shared_part> parts, std::uint64_t first, std::uint64_t bytes,
                            std::shared_ptr<const void> lease) {
  const region_description what = opened_.open(parts, first, bytes, std::move(lease));
  try {
    publish(what, false);
  } catch (...) {
    opened_.close(what);
    throw;
  }
  return what.base + first;
}

void allocator::free(void* pointer) {
  const allocation found = require(pointer);
  HPE_REQUIRE(found.base == pointer, HPE_ERROR_NOT_A_REGION,
              "{} lies {} bytes inside the allocation of {} bytes at {}; free that address", pointer,
              static_cast<std::byte*>(pointer) - found.base, found.bytes, static_cast<void*>(found.base));
  if (found.region->is.slab) return free_small(pointer, *pools_[found.region->is.pool]);
  remove_region(*found.region);
}

void allocator::remove_region(region& r) {
  point_set users;
  std::byte* base = nullptr;
  std::uint64_t shared = 0;
  {
    const std::lock_guard lock(r.mutex);
    HPE_REQUIRE(r.alive, HPE_ERROR_NOT_A_REGION, "the allocation at {} was freed by another thread just now",
                static_cast<void*>(r.is.base));
    require_unexported(r, r.whole());
    r.end();
    base = r.is.base;
    shared = std::exchange(r.shared, 0);
    r.order.before_write(r.whole(), users);
  }
  env_.faults.look_again(r.id);  // who waits for its data is told that it was freed
  env_.wait_for(users);
  env_.directory.clear(base, granules_for(r.is.bytes));
  auto give_back = [this, what = r.is, used = r.shadow_used] { give_back_memory(what, used); };
  // Its memory stays for processes that have it open.
  shared != 0 ? others_.retire(shared, std::move(give_back)) : give_back();
  env_.regions.give_back(r);
}

void allocator::give_back_memory(const region_description& what, bool shadow_used) {
  if (env_.space.segment_of(what.base).kind == segment_kind::foreign) return opened_.close(what);
  backing_.take(what);
  const kept_memory::place left{&segment_of(what.base), what.base, what.extent, granules_for(what.bytes) + guard};
  what.kind != region_kind::host&& shadow_used ? kept_.keep(left) : kept_.drop(left);
}

std::byte* allocator::allocate_small(std::size_t bytes, pool& from) {
  require_size(bytes);
  std::byte* object = nullptr;
  while ((object = from.objects.allocate(bytes)) == nullptr) {
    const std::lock_guard lock(from.growing);
    if ((object = from.objects.allocate(bytes)) != nullptr) break;
    region_description what;
    what.kind = from.kind;
    what.homes = {static_cast<std::uint16_t>(from.home)};
    what.slab = true;
    what.pool = static_cast<std::uint16_t>(from.kind == region_kind::host ? pools_.size() - 1 : from.home);
    memory::segment_allocator& segment = from.kind == region_kind::host ? host_segment_ : *device_segments_[from.home];
    from.objects.add_slab(make_region(granule_size, std::move(what), segment));
  }
  clear_small(require(object));
  return object;
}

void allocator::clear_small(const allocation& object) {
  // The memory may have belonged to another object. Where a block is the host's or nobody's, the shadow is enough.
  region& r = *object.region;
  const byte_range bytes{r.offset_of(object.base), r.offset_of(object.base) + object.bytes};
  {
    const std::lock_guard lock(r.mutex);
    bool on_host = r.single_copy();
    if (!on_host) {
      on_host = true;
      const auto run = r.blocks_of(bytes);
      for (std::uint64_t b = run.begin; b < run.end; ++b)
        on_host = on_host && (r.blocks[b].state == block_state::host || r.blocks[b].state == block_state::fresh);
    }
    if (on_host) {
      std::memset(env_.space.alias(object.base), 0, object.bytes);
      return;
    }
  }
  device_work work(env_, {{object.region, bytes, HPE_OUT}});
  point_set after;
  work.collect(after);
  work.record(env_.engine.fill(r.home_of(bytes.begin), object.base, 0, object.bytes, after.points()));
  work.commit();
}

void allocator::free_small(void* pointer, pool& from) {
  const allocation object = require(pointer);
  point_set users;
  {
    const std::lock_guard lock(object.region->mutex);
    const std::uint64_t begin = object.region->offset_of(object.base);
    require_unexported(*object.region, {begin, begin + object.bytes});
    object.region->order.before_write({begin, begin + object.bytes}, users);
  }
  env_.wait_for(users);
  std::byte* empty = from.objects.free(pointer);
  if (empty != nullptr && from.objects.remove_slab(empty)) remove_region(*object.region);
}

allocation allocator::find(const void* p) const {
  const memory::granule_entry entry = env_.directory.find(p);
  if (entry.region == 0) return {};
  region& r = env_.regions.at(entry.region);
  const std::lock_guard lock(r.mutex);
  if (!r.alive || !r.contains(p)) return {};
  if (!r.is.slab) {
    const std::uint64_t offset = r.offset_of(p);
    if (offset < r.is.first || offset >= r.is.bytes) return {};
    return {&r, r.is.base + r.is.first, r.is.bytes - r.is.first};
  }
  const auto object = pools_[r.is.pool]->objects.find(p);
  return object ? allocation{&r, object->base, object->size} : allocation{};
}

allocation allocator::require(const void* p) const {
  const allocation found = find(p);
  if (found.region != nullptr) return found;
  HPE_REQUIRE(env_.space.contains(p), HPE_ERROR_NOT_A_REGION, "{} is not an address that hpe gave out", p);
  HPE_THROW(HPE_ERROR_NOT_A_REGION, "{}",
            fault::explain_stray_access(static_cast<const std::byte*>(p), false, env_.directory, env_.regions));
}

allocation allocator::require(const void* p, std::size_t bytes) const {
  const allocation found = require(p);
  const std::uint64_t offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - found.base);
  HPE_REQUIRE(bytes <= found.bytes - offset, HPE_ERROR_NOT_A_REGION,
              "{} bytes at {} reach {} bytes past the end of the allocation of {} bytes at {}", bytes, p,
              bytes - (found.bytes - offset), found.bytes, static_cast<void*>(found.base));
  return found;
}

void allocator::migrate(const void* p, unsigned device) {
  region& r = *require(p).region;
  point_set users;
  {
    const std::lock_guard lock(r.mutex);
    r.order.before_write(r.whole(), users);
  }
  env_.wait_for(users);  // most of the waiting, without the mutex

  const std::lock_guard lock(r.mutex);
  HPE_REQUIRE(r.alive && r.contains(p), HPE_ERROR_NOT_A_REGION, "the allocation was freed by another thread just now");
  HPE_REQUIRE(!r.single_copy(), HPE_ERROR_NOT_SUPPORTED,
              "the allocation at {} is host memory, which every device reaches where it is",
              static_cast<void*>(r.is.base));
  mover_.move(r, device);
}

}  // namespace hpe::core
