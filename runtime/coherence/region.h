#pragma once

/// One allocation as the coherence protocol sees it: its place, the states of its blocks and the order of its users.
/// Plain data under one mutex. The code that changes states is in runtime/fault (accesses of the host) and runtime/core
/// (device work).
///
/// Region objects are reused, but not destroyed while the runtime lives. So a thread that found one through a stale
/// address may still lock it, and must then check `alive` and the range.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/base/granule.h"
#include "runtime/base/thread_safety.h"
#include "runtime/coherence/access_order.h"
#include "runtime/coherence/block_states.h"
#include "runtime/coherence/host_granules.h"
#include "runtime/coherence/read_ahead.h"
#include "runtime/coherence/resident_pieces.h"
#include "runtime/coherence/write_behind.h"

namespace hpe::memory {
class small_objects;
}

namespace hpe::coherence {

enum class region_kind : std::uint8_t {
  device,   ///< one home
  striped,  ///< a home for each granule
  host      ///< the shadow is the only copy; devices reach it
};

/// The description of a new region.
struct region_layout {
  region_kind kind = region_kind::device;
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;                 ///< the end of the allocation: the requested size
  std::uint64_t extent = 0;                ///< mapped bytes: `bytes` rounded up to pages
  std::uint64_t block_size = 0;            ///< a power of two
  std::vector<std::uint16_t> homes;        ///< one for the region, or one for each granule
  std::uint64_t piece_size = 0;            ///< a power of two: device memory comes and goes in pieces of this size
  std::uint64_t first = 0;                 ///< the offset of the allocation; not 0 only in memory of other processes
  memory::small_objects* small = nullptr;  ///< in a slab: the table of its small allocations
  std::uint64_t least_block_size = 0;      ///< for hosts that read here and there; 0: block_size

  /// The home of the byte at offset.
  [[nodiscard]] std::uint16_t home_of(std::uint64_t offset) const {
    return homes[homes.size() == 1 ? 0 : offset / granule_size];
  }
};

class region {
 public:
  mutable hpe::mutex mutex;

  bool alive HPE_GUARDED_BY(mutex) = false;     ///< begin() was called, and not yet end()
  bool degraded HPE_GUARDED_BY(mutex) = false;  ///< mappings ran out: the whole region is one block
  /// base, kind, bytes and extent do not change while the region is alive. Code that keeps the region alive may read
  /// them without the mutex.
  region_layout layout;
  hpeAdvice advice HPE_GUARDED_BY(mutex) = HPE_ADVISE_DEFAULT;
  access_order order HPE_GUARDED_BY(mutex);
  resident_pieces resident HPE_GUARDED_BY(mutex);
  host_granules on_host HPE_GUARDED_BY(mutex);
  read_ahead reader HPE_GUARDED_BY(mutex);
  write_behind writer HPE_GUARDED_BY(mutex);
  std::uint64_t shared HPE_GUARDED_BY(mutex) = 0;         ///< the number of its memory among processes; 0: not shared
  std::vector<byte_range> exports HPE_GUARDED_BY(mutex);  ///< the exported allocations in it, one entry for each export

  std::atomic<std::uint32_t> shadow_readers{0};  ///< threads that read the shadow (work::shadow_lease)

  explicit region(std::uint32_t number) : id(number) {}
  const std::uint32_t id;

  /// False only if all blocks are in state device and no lane is about to change that: then no view has to be closed.
  /// Set to false under the mutex only (close_to_host); may be read without it.
  std::atomic<bool> open_to_host{true};

  /// Makes the object a new region. Its blocks are fresh, or, if the shadow still has the bytes of a freed allocation,
  /// in state device with a home that reads as zero. No device memory is behind it at first (resident). Windows are in
  /// bytes; see the options.
  void begin(region_layout description, std::uint64_t prefetch_window, std::uint64_t rolling_window,
             block_state initial = block_state::fresh) HPE_REQUIRES(mutex);
  /// Changes the homes. The caller has moved the bytes.
  void set_homes(std::vector<std::uint16_t> homes) HPE_REQUIRES(mutex);
  /// Another number, of all regions, whenever homes change or the object becomes another region.
  [[nodiscard]] std::uint64_t homes_version() const noexcept HPE_REQUIRES(mutex) { return homes_version_; }
  /// Another number after each write of the host and whenever device work that writes was queued. So copies of the
  /// region elsewhere are valid as long as the number stays the same, if all blocks were in state device or shared
  /// then.
  [[nodiscard]] std::uint64_t contents_version() const noexcept HPE_REQUIRES(mutex) { return contents_version_; }
  /// Device work that writes to the region was queued.
  void note_write() noexcept HPE_REQUIRES(mutex) { ++contents_version_; }
  /// Ends the region; the object may be reused.
  void end() noexcept HPE_REQUIRES(mutex) { alive = false; }

  /// Sets the advice and forgets the recognised patterns.
  void advise(hpeAdvice advice) HPE_REQUIRES(mutex);

  /// The states of the region's blocks.
  [[nodiscard]] const block_states& blocks() const noexcept HPE_REQUIRES(mutex) { return blocks_; }
  [[nodiscard]] block_state state(std::uint64_t block) const noexcept HPE_REQUIRES(mutex) { return blocks_[block]; }
  /// States change only through these two functions; see block_states.
  void transition(block_run run, block_event event) noexcept HPE_REQUIRES(mutex);
  void begin_fetch(block_run run, block_event event, std::uint32_t number) noexcept HPE_REQUIRES(mutex);
  void set_rolled(block_run run, bool rolled) noexcept HPE_REQUIRES(mutex) { blocks_.set_rolled(run, rolled); }
  /// Notes a copy to the shadow that no state shows.
  void use_shadow() noexcept HPE_REQUIRES(mutex) { blocks_.use_shadow(); }
  /// Makes the whole region one block, in the state that all its blocks must have.
  void collapse() HPE_REQUIRES(mutex);
  /// Cuts each block into blocks of layout.least_block_size with the same state, and forgets the recognised patterns.
  /// Returns the number of blocks that each old one became; 1: nothing changed.
  std::uint64_t refine() HPE_REQUIRES(mutex);

  [[nodiscard]] bool contains(const void* p) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - layout.base) < layout.extent;
  }
  [[nodiscard]] std::uint64_t offset_of(const void* p) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - layout.base);
  }
  [[nodiscard]] std::uint64_t block_of(std::uint64_t offset) const noexcept { return offset / layout.block_size; }
  /// The blocks that overlap a range.
  [[nodiscard]] block_run blocks_of(byte_range range) const noexcept;
  /// The bytes of a run of blocks, cut at the extent.
  [[nodiscard]] byte_range bytes_of(block_run run) const noexcept;
  [[nodiscard]] byte_range whole() const noexcept { return {0, layout.extent}; }

  /// The blocks that lie entirely in a range.
  [[nodiscard]] block_run blocks_within(byte_range range) const noexcept HPE_REQUIRES(mutex);
  [[nodiscard]] block_run all_blocks() const noexcept HPE_REQUIRES(mutex) { return {0, blocks_.count()}; }

  /// The home of the byte at offset; memory::host_home for host regions.
  [[nodiscard]] std::uint16_t home_of(std::uint64_t offset) const noexcept;
  /// The bytes on devices: whole granules.
  [[nodiscard]] std::uint64_t bytes_at_homes() const noexcept;
  /// The end of the bytes from `offset` on that have one home, at most `limit`.
  [[nodiscard]] std::uint64_t end_of_home(std::uint64_t offset, std::uint64_t limit) const noexcept;
  /// The end of a piece that begins at `begin`: at most `limit`, at most `most` bytes long, with one home, and at the
  /// end of a block unless no block ends inside the piece.
  [[nodiscard]] std::uint64_t end_of_piece(std::uint64_t begin, std::uint64_t limit, std::uint64_t most) const noexcept;
  /// Calls visit(home, part) for each part of a range that has one home.
  template <class Visit>
  void for_each_home(byte_range range, const Visit& visit) const {
    for (byte_range part = range; part.begin < range.end; part.begin = part.end) {
      part.end = end_of_home(part.begin, range.end);
      visit(home_of(part.begin), part);
    }
  }
  /// A bit for each device that is the home of some bytes of the region.
  [[nodiscard]] std::uint64_t home_set() const noexcept { return home_set_; }
  /// Whether host and device work use the same single copy.
  [[nodiscard]] bool single_copy() const noexcept { return layout.kind == region_kind::host; }

  /// A lane calls this before it checks whether announcements let it open a view.
  void open_soon() noexcept {
    if (!open_to_host.load(std::memory_order_relaxed)) open_to_host = true;
  }
  /// Undoes open_soon() if all blocks are in state device.
  void close_to_host() noexcept HPE_REQUIRES(mutex) {
    if (blocks_.off_device() == 0) open_to_host = false;
  }

 private:
  block_states blocks_ HPE_GUARDED_BY(mutex);
  std::uint64_t prefetch_window_ = 0;
  std::uint64_t rolling_window_ = 0;
  std::uint64_t home_set_ = 0;
  std::uint64_t homes_version_ HPE_GUARDED_BY(mutex) = 0;
  std::uint64_t contents_version_ HPE_GUARDED_BY(mutex) = 0;  // never reset, so an object's regions differ

  void reset_patterns() HPE_REQUIRES(mutex);
};

/// The block size of an allocation: `wished`, or if that is 0 about 1/256 of the bytes, from 64 KiB to 2 MiB.
[[nodiscard]] std::uint64_t choose_block_size(std::uint64_t bytes, std::uint64_t wished) noexcept;
/// The block size that a region may be refined to: `wished`, or if that is 0 about 1/16384 of the bytes, because each
/// block may need a mapping of its own, from 64 KiB to 2 MiB.
[[nodiscard]] std::uint64_t choose_least_block_size(std::uint64_t bytes, std::uint64_t wished) noexcept;

}  // namespace hpe::coherence
