#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/options.h"
#include "runtime/base/thread_safety.h"
#include "runtime/coherence/region_table.h"
#include "runtime/core/memory/backing.h"
#include "runtime/core/memory/kept_memory.h"
#include "runtime/fault/service.h"
#include "runtime/memory/granule_table.h"
#include "runtime/memory/segment_allocator.h"
#include "runtime/work/sharing.h"
#include "runtime/work/submission.h"

namespace hpe::core {

/// Creates regions (allocates their addresses and their memory) and removes them. Thread-safe.
class region_maker {
 public:
  /// foreign: the segment for memory that other processes export, and for files that the program maps.
  region_maker(const options& option, const work::resources& with, memory::uvas& space, memory::granule_table& granules,
               coherence::region_table& regions, fault::service& faults, counters& count, work::sharing& others,
               memory::segment_allocator& foreign);

  /// Throws HPE_ERROR_INVALID_ARGUMENT for 0 bytes, and HPE_ERROR_OUT_OF_MEMORY for more bytes than a segment has.
  void require_size(std::size_t bytes) const;
  [[nodiscard]] static std::size_t granules_for(std::uint64_t bytes);

  /// Creates a region and returns its base. Uses only the members kind, open, homes and small of `description`. Throws
  /// the errors of require_size and backing::give; if make throws, no region has been created.
  [[nodiscard]] std::byte* make(std::size_t bytes, coherence::region_layout description);
  /// Creates a region of memory that another process has exported, and returns the first byte of its allocation; see
  /// opened_memory::open.
  [[nodiscard]] std::byte* adopt(std::span<const device::shared_part> parts, std::uint64_t first, std::uint64_t bytes,
                                 std::shared_ptr<const void> lease);
  /// Creates a region without memory, which files() can map; see opened_memory::reserve. The caller enters the granules
  /// with memory in the granule table.
  [[nodiscard]] coherence::region& reserve(std::size_t bytes);
  [[nodiscard]] opened_memory& files() noexcept { return opened_; }

  /// Waits for the work that uses a region, and removes the region. Throws HPE_ERROR_NOT_A_REGION if another thread has
  /// removed it, and HPE_ERROR_INVALID_ARGUMENT while bytes of it are exported.
  void remove(coherence::region& r);
  /// Throws HPE_ERROR_INVALID_ARGUMENT if any of these bytes are exported.
  static void require_unexported(const coherence::region& r, coherence::byte_range bytes) HPE_REQUIRES(r.mutex);

  /// What finish_removal needs to remove a region that has ended. prepare_removal fills this struct before the region
  /// ends, because the preparation allocates memory and may fail.
  struct removal {
    coherence::point_set users;
    work::sharing::ending of_memory;
  };
  removal prepare_removal(const coherence::region& r) HPE_REQUIRES(r.mutex);
  /// Waits for all work that uses the region and frees the region's memory. The caller has ended the region and does
  /// not hold the region's mutex.
  void finish_removal(coherence::region& r, removal&& what) noexcept;

  /// See allocator::when_short.
  void when_short(std::function<bool()> make_room) { make_room_ = std::move(make_room); }
  /// Returns the object that maps the device memory of regions.
  [[nodiscard]] backing& homes() noexcept { return backing_; }
  /// Returns the segment with the addresses that a move of a region may use temporarily.
  [[nodiscard]] memory::segment_allocator& spare_addresses() noexcept { return striped_segment_; }
  /// Whether allocations may be larger than device memory.
  [[nodiscard]] bool oversubscribes() const noexcept { return oversubscribe_; }

 private:
  /// Maps the device memory of a new region. Returns no ranges if device memory is short and allocations may exceed
  /// device memory. In this case, device memory is mapped when device work uses the region.
  [[nodiscard]] backing::parts give_memory(const coherence::region_layout& what);
  coherence::region& publish(const coherence::region_layout& what, const backing::parts& mapped, bool at_home);
  void give_back_memory(const coherence::region_layout& what, const backing::parts& mapped, bool shadow_used) noexcept;
  memory::segment_allocator& segment_for(const coherence::region_layout& made);
  memory::segment_allocator& segment_of(const std::byte* address);

  const options& option_;
  const bool oversubscribe_;
  // Whether allocations on devices get memory behind their ends (backing::give_behind). For CUDA programs under hpe run
  // --oversubscribe or --spread: some kernels read a little past the end of an array and ignore the value. In memory
  // that the driver allocates, such a read does no harm, because another allocation usually follows.
  const bool readable_behind_;
  std::function<bool()> make_room_;
  const work::resources with_;
  memory::uvas& space_;
  memory::granule_table& granules_;
  coherence::region_table& regions_;
  fault::service& faults_;
  work::sharing& others_;
  backing backing_;
  opened_memory opened_;
  kept_memory kept_;
  std::vector<std::unique_ptr<memory::segment_allocator>> device_segments_;
  memory::segment_allocator host_segment_;
  memory::segment_allocator striped_segment_;
  std::atomic<std::uint64_t> on_devices_{0};  // the bytes of all regions with homes on devices
};

}  // namespace hpe::core
