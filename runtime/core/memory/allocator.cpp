#include "runtime/core/memory/allocator.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/work/host_memory.h"
#include "runtime/work/residency.h"

// Other threads find a region from the moment the granule table names it (last step of make_region) until `alive` is
// cleared. After that nothing fails: all memory that the removal takes is allocated before (prepare_removal). The
// address space is handed out again after its backing is gone.

namespace hpe::core {

using coherence::block_state;
using coherence::byte_range;
using coherence::point_set;
using coherence::region;
using coherence::region_kind;
using coherence::region_layout;
using memory::segment_kind;

namespace {

// Granules behind each region that are never used. Accesses past an end hit nothing, and the mappings of neighbours are
// apart, so that protecting a whole region never splits a mapping.
constexpr std::size_t guard = 1;

std::uint64_t memory_of_machine() { return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * os::page_size(); }

std::uint64_t most_to_keep() { return memory_of_machine() / 8; }

void require_unexported(const region& r, byte_range bytes) HPE_REQUIRES(r.mutex) {
  const bool exported = std::any_of(r.exports.begin(), r.exports.end(),
                                    [&](const byte_range& e) { return e.begin < bytes.end && bytes.begin < e.end; });
  HPE_REQUIRE(!exported, HPE_ERROR_INVALID_ARGUMENT,
              "the allocation at {} is exported to other processes; hpeExportEnd comes before hpeFree",
              static_cast<void*>(r.layout.base + bytes.begin));
}

std::size_t granules_for(std::uint64_t bytes) { return round_up(bytes, granule_size) / granule_size; }

}  // namespace

allocator::allocator(const options& option, const work::resources& with, memory::uvas& space,
                     memory::granule_table& granules, coherence::region_table& regions, fault::service& faults,
                     counters& count, node::exporter& others, memory::segment_allocator& foreign)
    : option_(option),
      oversubscribe_(option.oversubscribe == "on"),
      with_(with),
      space_(space),
      granules_(granules),
      regions_(regions),
      faults_(faults),
      others_(others),
      backing_(with.devices, space, count, with.host),
      mover_(with, space, granules, count, backing_, striped_segment_, others, oversubscribe_),
      opened_(with.devices, space, foreign),
      kept_(space, with.devices, with.host.limited() ? 0 : std::min(option.kept_memory, most_to_keep())),
      host_segment_(space.segment_begin(segment_kind::host), space.layout().segment_size / granule_size),
      striped_segment_(space.segment_begin(segment_kind::striped), space.layout().segment_size / granule_size) {
  for (unsigned d = 0; d < with.devices.size(); ++d) {
    device_segments_.push_back(std::make_unique<memory::segment_allocator>(space.segment_begin(segment_kind::device, d),
                                                                           space.layout().segment_size / granule_size));
    pools_.push_back(std::make_unique<pool>());
    pools_.back()->kind = region_kind::device;
    pools_.back()->home = d;
  }
  pools_.push_back(std::make_unique<pool>());
  pools_.back()->kind = region_kind::host;
  pools_.back()->home = memory::host_home;
}

memory::segment_allocator& allocator::segment_of(const std::byte* address) {
  const memory::segment where = space_.segment_of(address);
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
  HPE_REQUIRE(!with_.devices.at(device).lost(), HPE_ERROR_DEVICE_LOST, "device {} is lost and gives no memory", device);
  if (bytes <= memory::small_objects::largest) return allocate_small(bytes, *pools_[device]);
  region_layout what;
  what.kind = region_kind::device;
  what.homes = {static_cast<std::uint16_t>(device)};
  return make_region(bytes, std::move(what), *device_segments_[device]);
}

std::byte* allocator::allocate_host(std::size_t bytes) {
  if (bytes <= memory::small_objects::largest) return allocate_small(bytes, *pools_.back());
  region_layout what;
  what.kind = region_kind::host;
  what.homes = {memory::host_home};
  return make_region(bytes, std::move(what), host_segment_);
}

std::byte* allocator::allocate_striped(std::size_t bytes, const hpeDistribution* distribution) {
  require_size(bytes);
  region_layout what;
  what.kind = region_kind::striped;
  what.homes = memory::distribute(distribution, granules_for(bytes), with_.devices.size());
  return make_region(bytes, std::move(what), striped_segment_);
}

void allocator::require_size(std::size_t bytes) const {
  HPE_REQUIRE(bytes != 0, HPE_ERROR_INVALID_ARGUMENT, "an allocation of 0 bytes was asked for; the smallest is 1");
  HPE_REQUIRE(bytes <= space_.layout().segment_size, HPE_ERROR_OUT_OF_MEMORY,
              "{} bytes were asked for; an allocation may have {} (HPE_SEGMENT_SIZE)", bytes,
              space_.layout().segment_size);
}

std::byte* allocator::make_region(std::size_t bytes, region_layout what, memory::segment_allocator& segment) {
  require_size(bytes);
  const std::size_t granules = granules_for(bytes);
  const std::size_t with_guard = granules + guard;
  what.bytes = bytes;
  what.extent = round_up(bytes, os::page_size());
  what.block_size = coherence::choose_block_size(bytes, option_.block_size);
  what.least_block_size = coherence::choose_least_block_size(bytes, option_.block_size);
  what.piece_size = with_.room.piece_size(what.homes);
  const bool reuse = what.kind != region_kind::host;
  const auto had = reuse ? kept_.take(segment, with_guard) : std::nullopt;
  what.base = had ? had->base : segment.allocate(with_guard);
  if (what.base == nullptr) {
    kept_.clear();
    what.base = segment.allocate(with_guard);
  }
  HPE_REQUIRE(what.base != nullptr, HPE_ERROR_OUT_OF_MEMORY,
              "no {} bytes of address space in a row are left in the segment of {} bytes (HPE_SEGMENT_SIZE)", bytes,
              space_.layout().segment_size);
  bool backed = false;
  backing::parts mapped;
  const work::residency::change now(with_.room);
  try {
    mapped = give_memory(what);
    backed = true;
    // Pages of a freed allocation hold old bytes, and only device memory can say that the new one reads as zero.
    const bool old_pages = had && had->pages == kept_memory::contents::old;
    // The pages behind the end of the allocation go as well: when it is freed, they are kept as pages of zeros, too.
    if (old_pages && mapped.empty()) {
      const std::uint64_t taken = with_guard * granule_size;
      HPE_REQUIRE(space_.unmap_view(what.base, taken), HPE_ERROR_SYSTEM,
                  "mprotect or munmap of {} bytes failed for lack of mappings; raise vm.max_map_count", taken);
      with_.devices.release_host(space_.alias(what.base), taken);
    }
    space_.map_view(what.base, what.extent, os::access::none);
    publish(what, mapped, old_pages && !mapped.empty());
  } catch (...) {
    if (backed) backing_.take(what, mapped);
    kept_.drop({&segment, what.base, with_guard});
    throw;
  }
  if (what.kind != region_kind::host) {
    on_devices_ += what.extent;
    if (!with_.host.limited()) with_.devices.prepare_host(space_.alias(what.base), what.extent);
  }
  return what.base;
}

backing::parts allocator::give_memory(const region_layout& what) {
  try {
    // Also where there is no room: the CUDA driver must reserve the addresses before the view is mapped there.
    return backing_.give(what);
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY || what.kind == region_kind::host) throw;
    const bool has_room = make_room_ && make_room_();
    if (!has_room && !oversubscribe_) throw;
    if (has_room && !oversubscribe_) return backing_.give(what);
  }
  std::uint64_t devices = 0;
  for (unsigned d = 0; d < with_.devices.size(); ++d) devices += with_.devices.at(d).info().memory_bytes;
  const std::uint64_t host = with_.host.limited() ? with_.host.capacity() : memory_of_machine();
  const std::uint64_t taken = on_devices_.load();
  HPE_REQUIRE(taken + what.extent <= devices + host, HPE_ERROR_OUT_OF_MEMORY,
              "{} bytes were asked for; the allocations on devices have {} bytes already, and the devices' {} bytes of "
              "memory and the host's {} hold no more",
              what.bytes, taken, devices, host);
  return {};
}

void allocator::publish(const region_layout& what, const backing::parts& mapped, bool at_home) {
  std::uint64_t ahead = option_.prefetch_window;
  if (what.kind != region_kind::host) ahead = std::min(ahead, with_.devices.at(what.homes[0]).info().most_ahead);
  region& r = regions_.take(what.homes[0]);
  try {
    const lock_guard lock(r.mutex);
    r.begin(what, std::min(ahead, with_.host.most_at_once()),
            std::min<std::uint64_t>(option_.rolling_window, with_.host.most_at_once()),
            at_home ? block_state::device : block_state::fresh);
    try {
      with_.host.track(r);
      r.resident.add(mapped);
    } catch (...) {
      r.end();
      throw;
    }
  } catch (...) {
    regions_.give_back(r);
    throw;
  }
  granules_.assign(what.base, granules_for(what.bytes), {r.id, what.homes[0]});
  if (what.homes.size() > 1)
    for (std::size_t g = 0; g < what.homes.size(); ++g)
      granules_.set_home(what.base + g * granule_size, 1, what.homes[g]);
}

std::byte* allocator::adopt(std::span<const device::shared_part> parts, std::uint64_t first, std::uint64_t bytes,
                            std::shared_ptr<const void> lease) {
  const region_layout what = opened_.open(parts, first, bytes, option_.block_size, std::move(lease));
  try {
    publish(what, {}, false);
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
  if (found.region->layout.small != nullptr) return free_small(found);
  remove_region(*found.region);
}

void allocator::remove_region(region& r) {
  const work::residency::change now(with_.room);
  removal what;
  {
    const lock_guard lock(r.mutex);
    HPE_REQUIRE(r.alive, HPE_ERROR_NOT_A_REGION, "the allocation at {} was freed by another thread just now",
                static_cast<void*>(r.layout.base));
    require_unexported(r, r.whole());
    what = prepare_removal(r);
    r.end();
  }
  finish_removal(r, std::move(what));
}

allocator::removal allocator::prepare_removal(const region& r) {
  removal result;
  r.order.before_write(r.whole(), result.users);
  result.give_back = [this, what = r.layout, mapped = r.resident.mapped(), shadow_used = r.blocks().shadow_used()] {
    give_back_memory(what, mapped, shadow_used);
  };
  return result;
}

void allocator::finish_removal(region& r, removal&& what) noexcept {
  const region_layout& was = r.layout;
  faults_.look_again(r.id);  // threads that wait for its data learn that it was freed
  work::wait_for(what.users.points(), with_.devices);
  if (was.small == nullptr) regions_.note_freed({was.base + was.first, was.bytes - was.first});
  with_.host.forget(r);
  granules_.clear(was.base, granules_for(was.bytes));
  std::uint64_t shared = 0;
  {
    const lock_guard lock(r.mutex);
    shared = std::exchange(r.shared, 0);
  }
  // Processes that have its memory open keep it until they close it.
  shared != 0 ? others_.retire(shared, std::move(what.give_back)) : what.give_back();
  regions_.give_back(r);
}

void allocator::give_back_memory(const region_layout& what, const backing::parts& mapped, bool shadow_used) noexcept {
  if (space_.segment_of(what.base).kind == segment_kind::foreign) return opened_.close(what);
  backing_.take(what, mapped);
  on_devices_ -= what.kind != region_kind::host ? what.extent : 0;
  kept_memory::space left{&segment_of(what.base), what.base, granules_for(what.bytes) + guard};
  if (what.kind != region_kind::host && shadow_used) return kept_.keep(left, kept_memory::contents::old);
  // Pages that were prepared, but not used, still read as zero.
  const std::size_t prepared = with_.devices.prepared_host(space_.alias(what.base), what.extent);
  kept_memory::space front = left;
  front.granules = prepared == what.extent ? left.granules : prepared / granule_size;
  left.base += front.granules * granule_size;
  left.granules -= front.granules;
  if (left.granules != 0) kept_.drop(left);
  if (front.granules != 0) kept_.keep(front, kept_memory::contents::zero);
}

std::byte* allocator::allocate_small(std::size_t bytes, pool& from) {
  require_size(bytes);
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
  region_layout what;
  what.kind = to.kind;
  what.homes = {static_cast<std::uint16_t>(to.home)};
  what.small = &to.objects;
  memory::segment_allocator& segment = to.kind == region_kind::host ? host_segment_ : *device_segments_[to.home];
  std::byte* const slab = make_region(granule_size, std::move(what), segment);
  region& r = regions_.at(granules_.find(slab).region);
  try {
    to.objects.add_slab(slab);
  } catch (...) {
    try_twice([&] { remove_region(r); });
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
  removal what;
  {
    const lock_guard lock(r.mutex);
    what = prepare_removal(r);
    if (!r.layout.small->remove_slab(r.layout.base)) return;  // another thread has allocated an object in it
    r.end();
  }
  finish_removal(r, std::move(what));
}

void allocator::discard_small(const allocation& object) noexcept {
  try {
    try_twice([&] { free_small(object); });
  } catch (const std::exception&) {
    // Memory is too short to remove the slab, which stays for later objects.
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
    if (on_host && with_.host.hold(r, bytes, work::host_memory::use::write)) {
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
    require_unexported(r, {begin, begin + object.bytes});
    r.order.before_write({begin, begin + object.bytes}, users);
  }
  work::wait_for(users.points(), with_.devices);
  const work::residency::change now(with_.room);
  removal of_slab;
  {
    // Objects of a slab are freed one after the other: freeing one that is not alone does not empty the slab.
    const lock_guard lock(r.mutex);
    if (objects.alone(small)) of_slab = prepare_removal(r);
    std::byte* const empty = objects.free(small);
    regions_.note_freed({object.base, object.bytes});
    if (empty == nullptr || !objects.remove_slab(empty)) return;
    r.end();
  }
  finish_removal(r, std::move(of_slab));
}

void allocator::place(const void* p, std::vector<std::uint16_t> homes) {
  region& r = *require(p).region;
  point_set users;
  {
    const lock_guard lock(r.mutex);
    r.order.before_write(r.whole(), users);
  }
  work::wait_for(users.points(), with_.devices);  // most of the wait, without the mutex

  const lock_guard lock(r.mutex);
  HPE_REQUIRE(r.alive && r.contains(p), HPE_ERROR_NOT_A_REGION, "the allocation was freed by another thread just now");
  HPE_REQUIRE(!r.single_copy(), HPE_ERROR_NOT_SUPPORTED,
              "the allocation at {} is host memory, which every device reaches where it is",
              static_cast<void*>(r.layout.base));
  mover_.move(r, std::move(homes));
}

}  // namespace hpe::core
