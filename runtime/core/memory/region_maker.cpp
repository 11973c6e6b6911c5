#include "runtime/core/memory/region_maker.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/work/host_spill.h"
#include "runtime/work/residency.h"

// Other threads can find a region from the time when the granule table names it (the last step of make) until `alive`
// is cleared. After that, no step of the removal can fail, because prepare_removal has allocated all memory that the
// removal needs. The region's addresses are reused only after their memory has been unmapped.

namespace hpe::core {

using coherence::block_state;
using coherence::byte_range;
using coherence::region;
using coherence::region_kind;
using coherence::region_layout;
using memory::segment_kind;

namespace {

// The number of granules after each region that belong to no region. Because of these granules, accesses past the end
// of a region reach no other region, and the system never merges the mappings of neighbouring regions. So a change of a
// whole region's protection never splits a mapping.
constexpr std::size_t guard = 1;

std::uint64_t memory_of_machine() { return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * os::page_size(); }

std::uint64_t most_to_keep() { return memory_of_machine() / 8; }

}  // namespace

region_maker::region_maker(const options& option, const work::resources& with, memory::uvas& space,
                           memory::granule_table& granules, coherence::region_table& regions, fault::service& faults,
                           counters& count, work::sharing& others, memory::segment_allocator& foreign)
    : option_(option),
      oversubscribe_(option.oversubscribe != oversubscription::off),
      readable_behind_(option.oversubscribe == oversubscription::on || option.spread),
      with_(with),
      space_(space),
      granules_(granules),
      regions_(regions),
      faults_(faults),
      others_(others),
      backing_(with.devices, space, count, with.host),
      opened_(with.devices, space, foreign),
      kept_(space, with.devices, with.host.limited() ? 0 : std::min(option.kept_memory, most_to_keep())),
      host_segment_(space.segment_begin(segment_kind::host), space.layout().segment_size / granule_size),
      striped_segment_(space.segment_begin(segment_kind::striped), space.layout().segment_size / granule_size) {
  for (unsigned d = 0; d < with.devices.size(); ++d)
    device_segments_.push_back(std::make_unique<memory::segment_allocator>(space.segment_begin(segment_kind::device, d),
                                                                           space.layout().segment_size / granule_size));
}

memory::segment_allocator& region_maker::segment_for(const region_layout& made) {
  switch (made.kind) {
    case region_kind::device: return *device_segments_[made.homes[0]];
    case region_kind::striped: return striped_segment_;
    case region_kind::host: break;
  }
  return host_segment_;
}

memory::segment_allocator& region_maker::segment_of(const std::byte* address) {
  const memory::segment where = space_.segment_of(address);
  switch (where.kind) {
    case segment_kind::device: return *device_segments_[where.device];
    case segment_kind::host: return host_segment_;
    case segment_kind::striped: return striped_segment_;
    case segment_kind::runtime:
    case segment_kind::foreign: break;
  }
  HPE_THROW(HPE_ERROR_INTERNAL, "defect in hpe: a region in a segment that has no regions");
}

void region_maker::require_size(std::size_t bytes) const {
  HPE_REQUIRE(bytes != 0, HPE_ERROR_INVALID_ARGUMENT,
              "an allocation of 0 bytes was asked for; the smallest has 1 byte");
  HPE_REQUIRE(bytes <= space_.layout().segment_size, HPE_ERROR_OUT_OF_MEMORY,
              "{} bytes were asked for; an allocation may have at most {} (HPE_SEGMENT_SIZE)", bytes,
              space_.layout().segment_size);
}

std::size_t region_maker::granules_for(std::uint64_t bytes) { return round_up(bytes, granule_size) / granule_size; }

std::byte* region_maker::make(std::size_t bytes, region_layout what) {
  require_size(bytes);
  if (what.kind == region_kind::host) with_.room.make_room_on_host(bytes);
  memory::segment_allocator& segment = segment_for(what);
  const std::size_t granules = granules_for(bytes);
  const std::size_t with_guard = granules + guard;
  what.bytes = bytes;
  what.extent = round_up(bytes, os::page_size());
  what.block_size = coherence::choose_block_size(bytes, option_.block_size);
  what.least_block_size = coherence::choose_least_block_size(bytes, option_.block_size);
  // If no piece is ever evicted (processes with HPE_SHARE evict pieces, too), many pieces would only make mapping and
  // unmapping slow. Moves between devices need some pieces, because a move needs temporary memory for all bytes of a
  // piece.
  constexpr std::uint64_t enough_pieces = 64;
  what.piece_size = with_.room.piece_size(what.homes);
  if (!oversubscribe_ && !with_.host.limited() && option_.share.empty())
    what.piece_size = std::max(what.piece_size, std::bit_ceil(bytes / enough_pieces));
  const bool reuse = what.kind != region_kind::host;
  const auto had = reuse ? kept_.take(segment, with_guard) : std::nullopt;
  what.base = had ? had->base : segment.allocate(with_guard);
  if (what.base == nullptr) {
    kept_.clear();
    what.base = segment.allocate(with_guard);
  }
  HPE_REQUIRE(what.base != nullptr, HPE_ERROR_OUT_OF_MEMORY,
              "no room is left for {} contiguous bytes in the segment of {} bytes of address space (HPE_SEGMENT_SIZE)",
              bytes, space_.layout().segment_size);
  bool backed = false;
  backing::parts mapped;
  const work::residency::change now(with_.room);
  try {
    mapped = give_memory(what);
    backed = true;
    if (readable_behind_ && what.kind != region_kind::host && what.small == nullptr) backing_.give_behind(what);
    // The pages of a freed allocation contain old bytes. They can be used only if the region has device memory: the
    // zeros at the home are then the valid copy.
    const bool old_pages = had && had->pages == kept_memory::contents::old;
    // The pages after the end of the allocation are also released, because give_back_memory may later keep them as
    // pages of zeros.
    if (old_pages && mapped.empty()) {
      const std::uint64_t taken = with_guard * granule_size;
      HPE_REQUIRE(space_.unmap_view(what.base, taken), HPE_ERROR_SYSTEM,
                  "mprotect or munmap of {} bytes failed for lack of mappings; raise vm.max_map_count", taken);
      with_.devices.release_host(space_.alias(what.base), taken);
    }
    space_.map_view(what.base, what.extent, what.open ? os::page_protection::read_write : os::page_protection::none);
    publish(what, mapped, old_pages && !mapped.empty());
  } catch (...) {
    if (backed) backing_.take(what, mapped);
    backing_.take_behind(what);
    kept_.drop({&segment, what.base, with_guard});
    throw;
  }
  if (what.kind != region_kind::host) {
    on_devices_ += what.extent;
    if (!with_.host.limited()) with_.devices.prepare_host(space_.alias(what.base), what.extent);
  }
  return what.base;
}

backing::parts region_maker::give_memory(const region_layout& what) {
  try {
    // Call give() even if device memory is short: it makes the CUDA driver reserve the addresses, which must happen
    // before the view is mapped there.
    return backing_.give(what);
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY || what.kind == region_kind::host) throw;
    const bool has_room = (make_room_ && make_room_()) || others_.settle();
    if (!has_room && !oversubscribe_) throw;
    if (has_room && !oversubscribe_) return backing_.give(what);
  }
  std::uint64_t devices = 0;
  for (unsigned d = 0; d < with_.devices.size(); ++d) devices += with_.devices.at(d).info().memory_bytes;
  const std::uint64_t host = with_.host.limited() ? with_.host.capacity() : memory_of_machine();
  const std::uint64_t taken = on_devices_.load();
  HPE_REQUIRE(taken + what.extent <= devices + host, HPE_ERROR_OUT_OF_MEMORY,
              "{} bytes were requested, but the allocations on devices already have {} bytes, and the {} bytes of "
              "device memory and {} bytes of host memory hold no more",
              what.bytes, taken, devices, host);
  return {};
}

region& region_maker::publish(const region_layout& what, const backing::parts& mapped, bool at_home) {
  std::uint64_t ahead = option_.prefetch_window;
  if (what.kind != region_kind::host) ahead = std::min(ahead, with_.devices.at(what.homes[0]).info().most_ahead);
  region& r = regions_.take(what.homes[0]);
  try {
    const lock_guard lock(r.mutex);
    r.begin(what, std::min(ahead, with_.host.most_at_once()),
            std::min<std::uint64_t>(option_.rolling_window, with_.host.most_at_once()),
            what.open ? block_state::host
            : at_home ? block_state::device
                      : block_state::fresh);
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
  if (what.mapped) return r;
  granules_.assign(what.base, granules_for(what.bytes), {r.id, what.homes[0]});
  if (what.homes.size() > 1)
    for (std::size_t g = 0; g < what.homes.size(); ++g)
      granules_.set_home(what.base + g * granule_size, 1, what.homes[g]);
  return r;
}

std::byte* region_maker::adopt(std::span<const device::shared_part> parts, std::uint64_t first, std::uint64_t bytes,
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

region& region_maker::reserve(std::size_t bytes) {
  require_size(bytes);
  const region_layout what = opened_.reserve(bytes);
  try {
    return publish(what, {}, false);
  } catch (...) {
    opened_.close(what);
    throw;
  }
}

void region_maker::require_unexported(const region& r, byte_range bytes) {
  HPE_REQUIRE(!r.shared.exported(bytes), HPE_ERROR_INVALID_ARGUMENT,
              "the allocation at {} is exported to other processes; call hpeExportEnd before hpeFree",
              static_cast<void*>(r.layout.base + bytes.begin));
}

void region_maker::remove(region& r) {
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

region_maker::removal region_maker::prepare_removal(const region& r) {
  removal result;
  r.order.before_write(r.whole(), result.users);
  result.of_memory = {r, [this, what = r.layout, mapped = r.resident.mapped(), shadow_used = r.blocks().shadow_used()] {
                        give_back_memory(what, mapped, shadow_used);
                      }};
  return result;
}

void region_maker::finish_removal(region& r, removal&& what) noexcept {
  const region_layout& was = r.layout;
  faults_.look_again(r.id);  // threads that wait for the region's data get the error that the region was freed
  work::wait_for(what.users.points(), with_.devices);
  if (was.small == nullptr) regions_.note_freed({was.base + was.first, was.bytes - was.first});
  with_.host.forget(r);
  granules_.clear(was.base, granules_for(was.bytes));
  others_.end(std::move(what.of_memory));
  regions_.give_back(r);
}

void region_maker::give_back_memory(const region_layout& what, const backing::parts& mapped,
                                    bool shadow_used) noexcept {
  if (space_.segment_of(what.base).kind == segment_kind::foreign) return opened_.close(what);
  backing_.take(what, mapped);
  backing_.take_behind(what);
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

}  // namespace hpe::core
