#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/options.h"
#include "runtime/base/thread_safety.h"
#include "runtime/coherence/region_table.h"
#include "runtime/core/memory/mover.h"
#include "runtime/core/memory/region_maker.h"
#include "runtime/fault/service.h"
#include "runtime/memory/granule_table.h"
#include "runtime/memory/segment_allocator.h"
#include "runtime/memory/small_objects.h"
#include "runtime/node/exporter.h"
#include "runtime/work/submission.h"

namespace hpe::core {

/// A live allocation as the program knows it: all of a region, or a small object in one.
struct allocation {
  coherence::region* region = nullptr;
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;  ///< the requested size
};

/// Makes, finds, moves and frees allocations. Thread-safe.
class allocator {
 public:
  /// others: exports memory of this process. foreign: addresses for memory of other processes.
  allocator(const options& option, const work::resources& with, memory::uvas& space, memory::granule_table& granules,
            coherence::region_table& regions, fault::service& faults, counters& count, node::exporter& others,
            memory::segment_allocator& foreign);

  [[nodiscard]] std::byte* allocate(std::size_t bytes, unsigned device);
  [[nodiscard]] std::byte* allocate_host(std::size_t bytes);
  [[nodiscard]] std::byte* allocate_striped(std::size_t bytes, const hpeDistribution* distribution);

  /// Makes an allocation of memory of another process; see opened_memory::open.
  [[nodiscard]] std::byte* adopt(std::span<const device::shared_part> parts, std::uint64_t first, std::uint64_t bytes,
                                 std::shared_ptr<const void> lease) {
    return maker_.adopt(parts, first, bytes, std::move(lease));
  }

  /// Frees an allocation after a wait for work that uses it. Throws HPE_ERROR_NOT_A_REGION unless an allocation starts
  /// at pointer, and HPE_ERROR_INVALID_ARGUMENT while bytes of it are exported.
  void free(void* pointer);

  /// The allocation that contains the byte at p; region nullptr if there is none.
  [[nodiscard]] allocation find(const void* p) const;
  /// Like find, but throws HPE_ERROR_NOT_A_REGION, with a description of the address, if there is none.
  [[nodiscard]] allocation require(const void* p) const;
  /// Like require(p), for a range that must lie in one allocation.
  [[nodiscard]] allocation require(const void* p, std::size_t bytes) const;

  /// The home of an address, read without a lock. May be outdated: only for choosing the buffers and threads to use.
  [[nodiscard]] unsigned likely_home(const std::byte* address) const noexcept { return granules_.find(address).home; }

  /// make_room is called when device memory is too short for an allocation, and frees memory that is only kept to save
  /// time; it returns false if there is none. To be set before the first allocation.
  void when_short(std::function<bool()> make_room) { maker_.when_short(std::move(make_room)); }

  /// Moves the region of an allocation to other homes: one for the region, or one for each granule. Other threads that
  /// use the region wait.
  void place(const void* p, std::vector<std::uint16_t> homes);
  void migrate(const void* p, unsigned device) { place(p, {static_cast<std::uint16_t>(device)}); }
  /// Moves a region whose mutex the caller holds.
  void move(coherence::region& r, unsigned device) HPE_REQUIRES(r.mutex) {
    mover_.move(r, {static_cast<std::uint16_t>(device)});
  }

 private:
  /// The small objects that have one home.
  struct pool {
    memory::small_objects objects;
    coherence::region_kind kind;
    unsigned home;
    mutex growing;  ///< lets one thread at a time add a slab, so that no unneeded one is added
  };

  std::byte* allocate_small(std::size_t bytes, pool& from);
  /// Returns nullptr if other threads have used up the slab.
  std::byte* allocate_in_new_slab(std::size_t bytes, pool& to);
  void free_small(const allocation& object);
  /// Frees an object whose address no caller has received.
  void discard_small(const allocation& object) noexcept;
  /// Removes a slab, unless there is an object in it.
  void remove_if_empty(coherence::region& r);
  void clear_small(const allocation& object);

  const work::resources with_;
  memory::uvas& space_;
  memory::granule_table& granules_;
  coherence::region_table& regions_;
  region_maker maker_;
  mover mover_;
  std::vector<std::unique_ptr<pool>> pools_;  // one for each device, then one for the host
};

}  // namespace hpe::core
