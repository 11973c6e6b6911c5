#include "runtime/core/memory/allocator.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/fault/explain.h"
#include "runtime/work/host_spill.h"
#include "runtime/work/residency.h"

namespace hpe::core {

using coherence::block_state;
using coherence::byte_range;
using coherence::point_set;
using coherence::region;
using coherence::region_kind;
using coherence::region_layout;

namespace {

region_layout on_device(unsigned device) {
  region_layout what;
  what.kind = region_kind::device;
  what.homes = {static_cast<std::uint16_t>(device)};
  return what;
}

region_layout on_host(bool open) {
  region_layout what;
  what.kind = region_kind::host;
  what.homes = {memory::host_home};
  what.open = open;
  return what;
}

}  // namespace

allocator::allocator(const options& option, const work::resources& with, memory::uvas& space,
                     memory::granule_table& granules, coherence::region_table& regions, fault::service& faults,
                     counters& count, work::sharing& others, memory::segment_allocator& foreign)
    : with_(with),
      space_(space),
      granules_(granules),
      regions_(regions),
      others_(others),
      maker_(option, with, space, granules, regions, faults, count, others, foreign),
      mover_(with, space, granules, count, maker_.homes(), maker_.spare_addresses(), others, maker_.oversubscribes()),
      files_(with, granules, maker_) {
  const auto add_pool = [&](region_layout slab) {
    pools_.push_back(std::make_unique<pool>());
    slab.small = &pools_.back()->objects;
    pools_.back()->slab = std::move(slab);
  };
  for (unsigned d = 0; d < with.devices.size(); ++d) add_pool(on_device(d));
  for (const bool open : {false, true}) add_pool(on_host(open));
}

std::byte* allocator::allocate(std::size_t bytes, unsigned device) {
  HPE_REQUIRE(!with_.devices.at(device).lost(), HPE_ERROR_DEVICE_LOST,
              "device {} is lost, so memory cannot be allocated on it", device);
  if (bytes <= memory::small_objects::largest) return allocate_small(bytes, *pools_[device]);
  return maker_.make(bytes, on_device(device));
}

std::byte* allocator::allocate_host(std::size_t bytes, bool open) {
  if (bytes <= memory::small_objects::largest) return allocate_small(bytes, host_pool(open));
  return maker_.make(bytes, on_host(open));
}

std::byte* allocator::allocate_striped(std::size_t bytes, const hpeDistribution* distribution) {
  maker_.require_size(bytes);
  return allocate_striped(bytes,
                          memory::distribute(distribution, region_maker::granules_for(bytes), with_.devices.size()));
}

std::byte* allocator::allocate_striped(std::size_t bytes, std::vector<std::uint16_t> homes) {
  region_layout what;
  what.kind = region_kind::striped;
  what.homes = std::move(homes);
  return maker_.make(bytes, std::move(what));
}

void allocator::free(void* pointer) {
  if (files_.free(pointer)) return;
  const allocation found = require(pointer);
  HPE_REQUIRE(found.base == pointer, HPE_ERROR_NOT_A_REGION,
              "{} lies {} bytes inside the allocation of {} bytes at {}; free the first address of the allocation",
              pointer, static_cast<std::byte*>(pointer) - found.base, found.bytes, static_cast<void*>(found.base));
  if (found.region->layout.small != nullptr) return free_small(found);
  maker_.remove(*found.region);
}

void allocator::await_users(const void* pointer) const {
  const allocation found = require(pointer);
  const std::uint64_t begin = found.region->offset_of(found.base);
  coherence::point_set users;
  {
    const lock_guard lock(found.region->mutex);
    if (found.region->alive) found.region->order.before_write({begin, begin + found.bytes}, users);
  }
  work::wait_for(users.points(), with_.devices);
}

std::byte* allocator::allocate_small(std::size_t bytes, pool& from) {
  maker_.require_size(bytes);
  std::byte* object = nullptr;
  while (object == nullptr && (object = from.objects.allocate(bytes)) == nullptr) {
    const lock_guard lock(from.growing);
    if ((object = from.objects.allocate(bytes)) != nullptr) break;
    object = allocate_in_new_slab(bytes, from);
  }
  const allocation made = require(object);
  try {
    clear_small(made);
  } catch (...) {
    discard_small(made);
    throw;
  }
  return object;
}

std::byte* allocator::allocate_in_new_slab(std::size_t bytes, pool& to) {
  std::byte* const slab = maker_.make(granule_size, to.slab);
  region& r = regions_.at(granules_.find(slab).region);
  try {
    to.objects.add_slab(slab);
  } catch (...) {
    try_twice([&] { maker_.remove(r); });
    throw;
  }
  try {
    return to.objects.allocate(bytes);
  } catch (...) {
    try_twice([&] { remove_if_empty(r); });
    throw;
  }
}

void allocator::remove_if_empty(region& r) {
  const work::residency::change now(with_.room);
  region_maker::removal what;
  {
    const lock_guard lock(r.mutex);
    what = maker_.prepare_removal(r);
    if (!r.layout.small->remove_slab(r.layout.base)) return;  // another thread has allocated an object in it
    r.end();
  }
  maker_.finish_removal(r, std::move(what));
}

void allocator::discard_small(const allocation& object) noexcept {
  try {
    try_twice([&] { free_small(object); });
  } catch (const std::exception&) {
    // There is too little memory to remove the slab, so the slab is kept for later objects.
    object.region->layout.small->free({object.base, object.bytes});
  }
}

void allocator::clear_small(const allocation& object) {
  // The memory may hold bytes of an older object. If the blocks are fresh or in state host, clear only the shadow.
  region& r = *object.region;
  const byte_range bytes{r.offset_of(object.base), r.offset_of(object.base) + object.bytes};
  bool on_host = true;
  {
    const lock_guard lock(r.mutex);
    const auto run = r.blocks_of(bytes);
    for (std::uint64_t b = run.begin; b < run.end && !r.single_copy(); ++b)
      on_host = on_host && (r.state(b) == block_state::host || r.state(b) == block_state::fresh);
    if (on_host && with_.host.hold(r, bytes, work::host_spill::shadow_use::write)) {
      std::memset(space_.alias(object.base), 0, object.bytes);
      return;
    }
  }
  if (on_host) {
    with_.host.bring({&r, bytes});
    return clear_small(object);
  }
  work::submission clear(with_, {{object.region, bytes, HPE_OUT}});
  clear.submit_by_home([&](unsigned home, byte_range part, const point_set& after) {
    return with_.engine.fill(home, r.layout.base + part.begin, 0, part.size(), after.points());
  });
}

void allocator::free_small(const allocation& object) {
  region& r = *object.region;
  memory::small_objects& objects = *r.layout.small;
  const memory::small_objects::object small{object.base, object.bytes};
  point_set users;
  {
    const lock_guard lock(r.mutex);
    const std::uint64_t begin = r.offset_of(object.base);
    region_maker::require_unexported(r, {begin, begin + object.bytes});
    r.order.before_write({begin, begin + object.bytes}, users);
  }
  work::wait_for(users.points(), with_.devices);
  objects.retire(small);
  regions_.note_freed({object.base, object.bytes});
  const std::uint64_t begin = r.offset_of(object.base);
  try {
    others_.when_closed(r, {begin, begin + object.bytes}, [this, &r, small] { give_back_small(r, small); });
  } catch (...) {
    objects.revive(small);
    throw;
  }
}

void allocator::give_back_small(region& r, const memory::small_objects::object& retired) {
  memory::small_objects& objects = *r.layout.small;
  const work::residency::change now(with_.room);
  region_maker::removal of_slab;
  {
    // Under this lock, the objects of a slab are freed one after the other. So the slab can become empty only if this
    // object is alone in it.
    const lock_guard lock(r.mutex);
    if (objects.alone(retired)) of_slab = maker_.prepare_removal(r);
    std::byte* const empty = objects.free(retired);
    if (empty == nullptr || !objects.remove_slab(empty)) return;
    r.end();
  }
  maker_.finish_removal(r, std::move(of_slab));
}

double allocator::place(const void* p, std::vector<std::uint16_t> homes) {
  region& r = *require(p).region;
  point_set users;
  bool is_shared = false;
  {
    const lock_guard lock(r.mutex);
    r.order.before_write(r.whole(), users);
    is_shared = !r.shared.empty();
  }
  if (is_shared) others_.settle();
  work::wait_for(users.points(), with_.devices);  // most of the waiting is done here, without the mutex

  const lock_guard lock(r.mutex);
  HPE_REQUIRE(r.alive && r.contains(p), HPE_ERROR_NOT_A_REGION, "the allocation was freed by another thread just now");
  HPE_REQUIRE(!r.single_copy(), HPE_ERROR_NOT_SUPPORTED,
              "the allocation at {} is host memory, which cannot be migrated: every device reaches it where it is",
              static_cast<void*>(r.layout.base));
  const auto begin = std::chrono::steady_clock::now();
  mover_.move(r, std::move(homes));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool allocator::may_move(const region& r) const {
  return !r.single_copy() && r.layout.small == nullptr && r.acquired == 0 && !others_.holds(r, r.whole());
}

bool allocator::others_may_write(const region& r) const { return others_.may_be_written(r, r.whole()); }

// ---- the allocation at an address -----------------------------------------------------------------------------------

allocation allocator::find(const void* p) const {
  const memory::granule_entry entry = granules_.find(p);
  if (entry.region == 0) return {};
  region& r = regions_.at(entry.region);
  const lock_guard lock(r.mutex);
  if (!r.alive || !r.contains(p)) return {};
  if (r.layout.small == nullptr) {
    const std::uint64_t offset = r.offset_of(p);
    if (offset < r.layout.first || offset >= r.layout.bytes) return {};
    return {&r, r.layout.base + r.layout.first, r.layout.bytes - r.layout.first};
  }
  const auto object = r.layout.small->find(p);
  return object ? allocation{&r, object->base, object->size} : allocation{};
}

bool allocator::is_in_space(const void* p) const noexcept { return space_.contains(p); }

allocation allocator::require(const void* p) const {
  const allocation found = find(p);
  if (found.region != nullptr) return found;
  HPE_REQUIRE(space_.contains(p), HPE_ERROR_NOT_A_REGION, "{} is not an address that hpe gave out", p);
  HPE_THROW(HPE_ERROR_NOT_A_REGION, "{} lies in no allocation: {}", p,
            fault::explain_stray_address(static_cast<const std::byte*>(p), granules_, regions_));
}

allocation allocator::require(const void* p, std::size_t bytes) const {
  const allocation found = require(p);
  const std::uint64_t offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - found.base);
  HPE_REQUIRE(bytes <= found.bytes - offset, HPE_ERROR_NOT_A_REGION,
              "{} bytes at {} reach {} bytes past the end of the allocation of {} bytes at {}", bytes, p,
              bytes - (found.bytes - offset), found.bytes, static_cast<void*>(found.base));
  if (found.region->layout.mapped) files_.require_mapped(*found.region, {offset, offset + bytes});
  return found;
}

}  // namespace hpe::core
