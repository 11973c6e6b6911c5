#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/options.h"
#include "runtime/base/thread_safety.h"
#include "runtime/coherence/region_table.h"
#include "runtime/core/memory/file_mappings.h"
#include "runtime/core/memory/mover.h"
#include "runtime/core/memory/region_maker.h"
#include "runtime/fault/service.h"
#include "runtime/memory/granule_table.h"
#include "runtime/memory/segment_allocator.h"
#include "runtime/memory/small_objects.h"
#include "runtime/node/exporter.h"
#include "runtime/work/residency.h"
#include "runtime/work/submission.h"

namespace hpe::core {

/// A live allocation of the program: a whole region, or a small object in a region.
struct allocation {
  coherence::region* region = nullptr;
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;  ///< the requested size
};

/// Allocates, finds, moves and frees the program's memory. Thread-safe.
class allocator {
 public:
  /// foreign: the segment for memory that other processes export, and for files that the program maps.
  allocator(const options& option, const work::resources& with, memory::uvas& space, memory::granule_table& granules,
            coherence::region_table& regions, fault::service& faults, counters& count, work::sharing& others,
            memory::segment_allocator& foreign);

  [[nodiscard]] std::byte* allocate(std::size_t bytes, unsigned device);
  /// open: whether CPU code may access the memory at all times, even while devices use it.
  [[nodiscard]] std::byte* allocate_host(std::size_t bytes, bool open);
  [[nodiscard]] std::byte* allocate_striped(std::size_t bytes, const hpeDistribution* distribution);
  /// homes: one for each granule of the allocation.
  [[nodiscard]] std::byte* allocate_striped(std::size_t bytes, std::vector<std::uint16_t> homes);
  /// Throws if no allocation can have this size (region_maker::require_size).
  void require_size(std::size_t bytes) const { maker_.require_size(bytes); }

  /// Creates an allocation of memory that another process has exported; see opened_memory::open.
  [[nodiscard]] std::byte* adopt(std::span<const device::shared_part> parts, std::uint64_t first, std::uint64_t bytes,
                                 std::shared_ptr<const void> lease) {
    return maker_.adopt(parts, first, bytes, std::move(lease));
  }

  /// The ranges of addresses into which the program maps files.
  [[nodiscard]] file_mappings& files() noexcept { return files_; }

  /// Waits for the work that uses an allocation, and frees the allocation; a range of files() is also an allocation.
  /// Throws HPE_ERROR_NOT_A_REGION unless an allocation starts at pointer, and HPE_ERROR_INVALID_ARGUMENT while bytes
  /// of it are exported.
  void free(void* pointer);

  /// Waits for the work queued so far that uses an allocation.
  void await_users(const void* pointer) const;

  /// Returns the allocation that contains the byte at p; its region is nullptr if no allocation contains the byte.
  [[nodiscard]] allocation find(const void* p) const;
  /// Whether an address is in hpe's address space, in an allocation or not.
  [[nodiscard]] bool is_in_space(const void* p) const noexcept;
  /// Like find, but throws HPE_ERROR_NOT_A_REGION, with a description of the address, if no allocation contains the
  /// byte.
  [[nodiscard]] allocation require(const void* p) const;
  /// Like require(p), for a range. Also throws if the range leaves the allocation.
  [[nodiscard]] allocation require(const void* p, std::size_t bytes) const;

  /// Returns the home of the granule at an address, read without a lock. The home may change at any time, so callers
  /// may use the result only to choose buffers and threads.
  [[nodiscard]] unsigned likely_home(const std::byte* address) const noexcept { return granules_.find(address).home; }

  /// Sets the function that is called if an allocation needs more device memory than is free. make_room frees memory
  /// that hpe keeps only to save time, and returns false if it has freed no memory. Call when_short before the first
  /// allocation.
  void when_short(std::function<bool()> make_room) { maker_.when_short(std::move(make_room)); }

  /// See work::residency.
  void withhold(unsigned device, std::size_t bytes) { with_.room.withhold(device, bytes); }
  void restore(unsigned device, std::size_t bytes) noexcept { with_.room.restore(device, bytes); }
  [[nodiscard]] std::uint64_t withheld(unsigned device) const noexcept { return with_.room.withheld(device); }
  [[nodiscard]] std::uint64_t most_of(unsigned device) const { return with_.room.most_of(device); }

  /// Moves the region of an allocation to other homes: a single home, or one home for each granule. Other threads that
  /// use the region wait for the move. Returns the duration of the move in seconds, without the wait for earlier work.
  double place(const void* p, std::vector<std::uint16_t> homes);
  void migrate(const void* p, unsigned device) { place(p, {static_cast<std::uint16_t>(device)}); }
  /// Whether a region can move to other homes: its kind allows a move, and no other process uses the region.
  [[nodiscard]] bool may_move(const coherence::region& r) const HPE_REQUIRES(r.mutex);
  /// Whether other processes may have written bytes of a region that this process has not seen yet (work::sharing).
  [[nodiscard]] bool others_may_write(const coherence::region& r) const HPE_REQUIRES(r.mutex);
  /// Moves a region to a device; the caller holds the region's mutex.
  void move(coherence::region& r, unsigned device) HPE_REQUIRES(r.mutex) {
    mover_.move(r, {static_cast<std::uint16_t>(device)});
  }

 private:
  /// The small objects in slabs of one kind with one home.
  struct pool {
    memory::small_objects objects;
    coherence::region_layout slab;  ///< the layout of a new slab
    mutex growing;                  ///< held while a slab is added, so that two threads do not both add a slab
  };

  [[nodiscard]] pool& host_pool(bool open) { return *pools_[with_.devices.size() + (open ? 1 : 0)]; }
  std::byte* allocate_small(std::size_t bytes, pool& from);
  /// Returns nullptr if other threads have filled the slab in the meantime.
  std::byte* allocate_in_new_slab(std::size_t bytes, pool& to);
  void free_small(const allocation& object);
  /// Frees a retired small object. No other process may use the object.
  void give_back_small(coherence::region& r, const memory::small_objects::object& retired);
  /// Frees an object whose address was not returned to any caller.
  void discard_small(const allocation& object) noexcept;
  /// Removes a slab if it contains no object.
  void remove_if_empty(coherence::region& r);
  void clear_small(const allocation& object);

  const work::resources with_;
  memory::uvas& space_;
  memory::granule_table& granules_;
  coherence::region_table& regions_;
  work::sharing& others_;
  region_maker maker_;
  mover mover_;
  file_mappings files_;
  std::vector<std::unique_ptr<pool>>
      pools_;  // one for each device, then one for host memory, then one for open host memory
};

}  // namespace hpe::core
